package server_test

import (
	"bufio"
	"context"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"countersign/internal/desk"
	"countersign/internal/id"
	"countersign/internal/identity"
)

// watch opens an event stream; over is closed when the server has ended it.
func (s *site) watch(path string, headers ...string) (over <-chan struct{}) {
	s.t.Helper()
	web := httptest.NewServer(s.server.Handler())
	s.t.Cleanup(web.Close)
	ctx, leave := context.WithCancel(s.t.Context())
	s.t.Cleanup(leave) // before the server closes, which waits for its streams
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+path, nil)
	s.must(err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	s.must(err)
	s.t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewReader(res.Body)
	if line, err := lines.ReadString('\n'); err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("the stream opens with %d %q, %v", res.StatusCode, line, err)
	}
	ended := make(chan struct{})
	go func() {
		if _, err := io.Copy(io.Discard, lines); err == nil { // an error is the client's own leaving
			close(ended)
		}
	}()
	return ended
}

// TestEvents_EndWithWhatTheyWereOpenedWith signs out, changes the password,
// disables the person, and revokes the token: each ends the stream at once.
func TestEvents_EndWithWhatTheyWereOpenedWith(t *testing.T) {
	s := newSite(t)
	d := s.inst.Desk
	person := func(name string) id.Person { return s.principal(name).Person }
	for _, e := range []struct {
		what, who string
		end       func()
	}{
		{"signing out", "ana", func() { s.want("sign out", s.post("ana", "/signout"), http.StatusSeeOther) }},
		{"a new password", "ben", func() {
			s.must(d.ChangePassword(t.Context(), s.principal("ben"), "correct horse ben", "another horse for ben"))
		}},
		{"disabling", "dev", func() { s.must(d.SetActive(t.Context(), desk.Terminal(), person("dev"), false)) }},
	} {
		over := s.watch("/events", "Cookie", "countersign="+s.token(e.who))
		e.end()
		s.ends(e.what, over)
	}
	secret, info, err := d.CreateToken(t.Context(), desk.Terminal(), identity.NewToken{Owner: person("chloe"), Name: "watcher", Scopes: []string{"runs:read"}, Life: time.Hour})
	s.must(err)
	over := s.watch("/api/v1/events", "Authorization", "Bearer "+secret)
	s.must(d.RevokeToken(t.Context(), desk.Terminal(), info.ID))
	s.ends("revoking the token", over)
}

// ends waits for the stream's end, for less than a beat.
func (s *site) ends(what string, over <-chan struct{}) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience/2)
	defer cancel()
	select {
	case <-over:
	case <-ctx.Done():
		s.t.Errorf("%s left the event stream open", what)
	}
}

// TestEvents_WhatHappensBetweenReadingAndListeningIsHeard: a page that was
// made just before something changed is told of it.
func TestEvents_WhatHappensBetweenReadingAndListeningIsHeard(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	page := s.get("ana", "/approvals/"+a.ID)
	at := regexp.MustCompile(`data-events="([^"]*)"`).FindStringSubmatch(page.Body.String())
	if at == nil {
		t.Fatal("the page has no event stream")
	}
	s.want("a comment of somebody else", s.post("ben", "/approvals/"+a.ID+"/comments", "comment", "Wait."), http.StatusSeeOther)
	web := httptest.NewServer(s.server.Handler())
	t.Cleanup(web.Close)
	ctx, leave := context.WithTimeout(t.Context(), patience/2)
	t.Cleanup(leave)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+html.UnescapeString(at[1]), nil)
	s.must(err)
	r.Header.Set("Cookie", "countersign="+s.token("ana"))
	res, err := http.DefaultClient.Do(r)
	s.must(err)
	t.Cleanup(func() { leave(); res.Body.Close() })
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if lines.Text() == "event: approvals" {
			return
		}
	}
	t.Error("the comment is never heard of")
}
