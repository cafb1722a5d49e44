package server_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	quoted  = regexp.MustCompile("`(?:(GET|POST) )?(/[^`? ]*)[^`]*`")
	pathArg = regexp.MustCompile(`\{(\w+)\}`)
)

// TestRoutes_TheTableOfPagesIsTheRouter holds the table in which the pages
// are described against the router's own list, both ways.
func TestRoutes_TheTableOfPagesIsTheRouter(t *testing.T) {
	text, err := os.ReadFile("../../web/templates/README.md")
	if err != nil {
		t.Fatal(err)
	}
	routes, _ := newSite(t).routes()
	var told []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			route := m[1] + " " + pathArg.ReplaceAllString(m[2], ":$1")
			if m[1] == "" {
				route = "GET" + route
			}
			told = append(told, route)
			if !slices.Contains(routes, route) {
				t.Errorf("the table promises %s, which is no route", route)
			}
		}
	}
	for _, r := range routes {
		formBack := strings.HasPrefix(r, "GET") && slices.Contains(told, "POST"+strings.TrimPrefix(r, "GET"))
		apart := slices.Contains([]string{"GET /static/*", "GET /favicon.ico", "GET /healthz", "GET /readyz", "GET /events"}, r)
		if !slices.Contains(told, r) && !formBack && !apart {
			t.Errorf("%s is missing in the table", r)
		}
	}
}
