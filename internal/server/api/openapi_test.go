package api_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"countersign/internal/server/api"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
)

func TestOpenAPI_DescribesExactlyTheRoutes(t *testing.T) {
	raw, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	var described, mounted []string
	for path, ops := range doc.Paths {
		for method := range ops {
			described = append(described, strings.ToUpper(method)+" "+strings.ReplaceAll(path, "{id}", ":id"))
		}
	}
	e := echo.New()
	api.Mount(e.Group("/api/v1"), api.Options{Logger: slog.New(slog.DiscardHandler)})
	for _, r := range e.Routes() {
		if r.Method != "echo_route_not_found" {
			mounted = append(mounted, r.Method+" "+strings.TrimPrefix(r.Path, "/api/v1"))
		}
	}
	slices.Sort(described)
	slices.Sort(mounted)
	if diff := cmp.Diff(mounted, described); diff != "" {
		t.Errorf("openapi.json differs from the routes (-mounted +described):\n%s", diff)
	}
}
