package static_test

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"countersign/web/static"
)

func get(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	static.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestHandler_ServesEachAssetForEver(t *testing.T) {
	kinds := map[string]string{static.CSS(): "text/css", static.JS(): "text/javascript", static.Icon(): "image/svg+xml"}
	for path, kind := range kinds {
		got := get(t, path)
		if got.Code != 200 || !strings.HasPrefix(got.Header().Get("Content-Type"), kind) || !strings.Contains(got.Header().Get("Cache-Control"), "immutable") || got.Body.Len() == 0 {
			t.Errorf("%s: %d %v, %d bytes; want 200, %s, immutable", path, got.Code, got.Header(), got.Body.Len(), kind)
		}
	}
}

func TestHandler_RefusesOtherVersionsAndPaths(t *testing.T) {
	for _, path := range []string{"/static/app.000000000000.css", "/static/", "/static/css/10-tokens.css", "/static/../static.go"} {
		if got := get(t, path); got.Code != 404 {
			t.Errorf("%s: %d, want 404", path, got.Code)
		}
	}
	if got := get(t, "/favicon.ico"); got.Code != 200 || strings.Contains(got.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("/favicon.ico: %d %v; want 200 and not for ever", got.Code, got.Header())
	}
}

func TestAssets_FetchNothingFromElsewhere(t *testing.T) {
	for _, name := range static.Names() {
		body := bytes.ReplaceAll(static.Bytes(name), []byte(`xmlns="http://www.w3.org/2000/svg"`), nil)
		for _, bad := range []string{"http://", "https://", "url(", "@import", "innerHTML", "eval(", "JSON.parse"} {
			if bytes.Contains(body, []byte(bad)) {
				t.Errorf("%s contains %q", name, bad)
			}
		}
	}
}

var token = regexp.MustCompile(`--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);`)

// palette reads the colours of one scheme: 0 light, 1 dark.
func palette(scheme int) map[string]string {
	out := map[string]string{}
	for _, m := range token.FindAllStringSubmatch(string(static.Bytes(static.CSS())), -1) {
		out[m[1]] = m[2+scheme]
	}
	return out
}

// luminance and contrast are those of WCAG 2.2.
func luminance(hex string) float64 {
	l := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			panic(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		l += weight * c
	}
	return l
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestColours_AreReadable checks WCAG AA in both schemes: 4.5 for text, 3 for
// the edges of controls, on every ground they stand on.
func TestColours_AreReadable(t *testing.T) {
	grounds := []string{"paper", "sheet", "sunk", "lift", "accent-wash", "good-wash", "warn-wash", "bad-wash", "unknown-wash"}
	for scheme, name := range []string{"light", "dark"} {
		p := palette(scheme)
		check := func(front, back string, want float64) {
			if p[front] == "" || p[back] == "" {
				t.Fatalf("no colour %s or %s", front, back)
			}
			if got := contrast(p[front], p[back]); got < want {
				t.Errorf("%s: %s on %s has %.2f, want %.1f", name, front, back, got, want)
			}
		}
		for _, ground := range grounds {
			check("ink", ground, 7)
			check("ink-soft", ground, 4.5)
			check("accent", ground, 4.5)
		}
		for _, ground := range grounds[:4] {
			check("edge", ground, 3)
			for _, tone := range []string{"good", "wait", "warn", "bad", "unknown", "risk-low", "risk-medium", "risk-high", "risk-critical"} {
				check(tone, ground, 4.5)
			}
		}
		for _, tone := range []string{"good", "warn", "bad", "unknown"} {
			check(tone, tone+"-wash", 4.5)
		}
		check("on-accent", "accent", 4.5)
		check("on-accent", "accent-deep", 4.5)
	}
}

func ExamplePlain() {
	fmt.Println(static.Plain("/static/x"), static.Plain("/inbox"))
	// Output: true false
}
