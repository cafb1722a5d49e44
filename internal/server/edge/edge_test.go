package edge_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"countersign/internal/problem"
	"countersign/internal/server/edge"

	"github.com/labstack/echo/v4"
)

// call sends one request through all of the middleware to a handler that
// answers 200 "done", panics, or fails.
func call(t *testing.T, prepare func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	e := echo.New()
	logger := slog.New(slog.DiscardHandler)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		p := edge.Problem(err)
		_ = c.String(edge.Status(p), p.Code+": "+p.Message)
	}
	e.Use(edge.References, edge.Headers, edge.Recover(logger), edge.Hosts("https://console.example.org"), edge.SameOrigin(), edge.Limit)
	e.Any("/x", func(c echo.Context) error {
		switch c.QueryParam("do") {
		case "panic":
			panic("the cause")
		case "fail":
			return errors.New("the cause")
		case "read":
			if _, err := c.FormParams(); err != nil {
				return err
			}
		}
		return c.String(200, "done")
	})
	r := httptest.NewRequest("POST", "/x", nil)
	r.Host = "console.example.org"
	prepare(r)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func TestEdge_RefusesBeforeTheHandler(t *testing.T) {
	set := func(k, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(k, v) } }
	cases := []struct {
		name    string
		prepare func(*http.Request)
		status  int
	}{
		{"plain program", func(*http.Request) {}, 200},
		{"same origin", set("Sec-Fetch-Site", "same-origin"), 200},
		{"typed address", set("Sec-Fetch-Site", "none"), 200},
		{"another site", set("Sec-Fetch-Site", "cross-site"), 403},
		{"sister domain", set("Sec-Fetch-Site", "same-site"), 403},
		{"another origin, old browser", set("Origin", "https://evil.example"), 403},
		{"null origin", set("Origin", "null"), 403},
		{"own origin, old browser", set("Origin", "https://console.example.org"), 200},
		{"rebound name", func(r *http.Request) { r.Host = "evil.example" }, 403},
		{"rebound name with port", func(r *http.Request) { r.Host = "evil.example:8080" }, 403},
		{"loopback", func(r *http.Request) { r.Host = "127.0.0.1:8080" }, 200},
		{"loopback, six", func(r *http.Request) { r.Host = "[::1]:8080" }, 200},
		{"localhost", func(r *http.Request) { r.Host = "localhost:8080" }, 200},
		{"declared too large", func(r *http.Request) { r.ContentLength = edge.FormBytesMax + 1 }, 413},
		{"unknown page", func(r *http.Request) { r.URL.Path = "/y" }, 404},
	}
	for _, c := range cases {
		if got := call(t, c.prepare); got.Code != c.status {
			t.Errorf("%s: status %d (%s), want %d", c.name, got.Code, got.Body, c.status)
		}
	}
}

func TestEdge_AnUndeclaredLargeBodyIsCut(t *testing.T) {
	got := call(t, func(r *http.Request) {
		r.URL.RawQuery = "do=read"
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Body = http.NoBody
		big := httptest.NewRequest("POST", "/x", strings.NewReader("a="+strings.Repeat("b", edge.FormBytesMax)))
		r.Body, r.ContentLength = big.Body, -1
	})
	if got.Code != 413 {
		t.Errorf("status %d (%s), want 413", got.Code, got.Body)
	}
}

func TestEdge_ShowsNothingOfAForeignError(t *testing.T) {
	for _, do := range []string{"panic", "fail"} {
		got := call(t, func(r *http.Request) { r.URL.RawQuery = "do=" + do })
		if got.Code != 500 || strings.Contains(got.Body.String(), "the cause") {
			t.Errorf("%s: %d %s; want 500 without the cause", do, got.Code, got.Body)
		}
	}
}

func TestEdge_EveryAnswerCarriesTheHeaders(t *testing.T) {
	for _, path := range []string{"/x", "/missing"} {
		h := call(t, func(r *http.Request) { r.URL.Path = path }).Header()
		for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy", "Cache-Control", "X-Request-Id"} {
			if h.Get(name) == "" {
				t.Errorf("%s: the header %s is missing", path, name)
			}
		}
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
}

func TestStatus_EveryKindHasOne(t *testing.T) {
	kinds := []problem.Kind{problem.Invalid, problem.Malformed, problem.Unauthenticated, problem.Forbidden, problem.NotFound,
		problem.Conflict, problem.TooLarge, problem.RateLimited, problem.Unavailable}
	for _, k := range kinds {
		if got := edge.Status(problem.New(k, "x", "x")); got == 500 {
			t.Errorf("kind %s has no status", k)
		}
	}
}
