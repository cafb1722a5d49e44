package desk_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"countersign/internal/identity"
)

// visitor is a person at the console's pages.
type visitor struct {
	t      *testing.T
	base   string
	cookie string
}

func (w *world) visitor(base, who string) visitor {
	w.t.Helper()
	session, err := w.desk.SignIn(w.t.Context(), identity.Credentials{Email: who + "@example.org", Password: "correct horse " + who, Address: "127.0.0.1"}, "test")
	w.must(err)
	return visitor{w.t, base, session}
}

var tags = regexp.MustCompile(`<[^>]*>`)

// visit gets a page, or posts a form to it, and returns the readable text.
func (v visitor) visit(path string, form url.Values) (status int, text string) {
	v.t.Helper()
	method := "GET"
	var headers []string
	if form != nil {
		method, headers = "POST", []string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}
	}
	a := caller{v.t, v.base, ""}.send(method, path, form.Encode(), append(headers, "Cookie", "countersign="+v.cookie)...)
	return a.status, strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(a.raw, " "))), " ")
}

// shows fails unless the page has the status and all the texts.
func (v visitor) shows(status int, path string, form url.Values, texts ...string) {
	v.t.Helper()
	got, text := v.visit(path, form)
	if got != status {
		v.t.Fatalf("%s: status %d, want %d: %.800s", path, got, status, text)
	}
	for _, want := range texts {
		if !strings.Contains(text, want) {
			v.t.Errorf("%s lacks %q: %.3000s", path, want, text)
		}
	}
}
