package arch_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "countersign/"

// foundation is what any package above it may use: errors, ids and the
// languages of the product. None of it knows the database.
var foundation = []string{"internal/problem", "internal/id", "internal/nearest", "internal/canon", "internal/strictyaml", "internal/expr", "internal/schema", "internal/sealed"}

func with(base []string, more ...string) []string { return append(slices.Clone(base), more...) }

// domain is foundation and the database.
var domain = with(foundation, "internal/store")

// allowed is the import map: for each package the packages of this module it
// may import, tests left out. A package that is missing here fails the test.
var allowed = map[string][]string{
	"internal/problem":    {},
	"internal/id":         {},
	"internal/live":       {},
	"internal/nearest":    {},
	"internal/canon":      {"internal/problem", "internal/nearest"},
	"internal/strictyaml": {"internal/problem", "internal/nearest", "internal/canon"},
	"internal/schema":     {"internal/problem", "internal/nearest", "internal/canon"},
	"internal/expr":       {"internal/problem", "internal/nearest", "internal/canon"},
	"internal/sealed":     {"internal/canon"},
	"internal/store":      {"internal/problem"},

	"internal/audit/receipt": {},
	"internal/audit":         {"internal/problem", "internal/id", "internal/canon", "internal/store", "internal/audit/receipt"},
	"internal/identity":      domain,
	"internal/notify":        domain,
	"internal/workflow":      foundation,
	"internal/tools":         foundation,
	"internal/approvals":     domain,
	"internal/definitions":   with(domain, "internal/workflow", "internal/tools", "internal/approvals"),
	"internal/vault":         domain,
	"internal/engine":        with(domain, "internal/workflow", "internal/tools", "internal/vault"),

	// The engine and the desk tell an Observer of their own; only this package
	// knows what is made of it.
	"internal/telemetry": with(domain, "internal/engine", "internal/desk", "internal/workflow"),

	"internal/instance": with(domain, "internal/desk", "internal/telemetry", "internal/definitions", "internal/approvals", "internal/engine", "internal/audit", "internal/identity", "internal/live", "internal/tools", "internal/workflow", "internal/vault"),
	"internal/desk": with(domain, "internal/vault", "internal/workflow", "internal/tools", "internal/definitions", "internal/approvals",
		"internal/engine", "internal/audit", "internal/audit/receipt", "internal/identity", "internal/notify", "internal/live"),

	"web/static": {},
	// Making deceptive text safe to read is pure and is tested on its own; the
	// templates call it themselves, so that no handler can forget to.
	"web/visible":         {},
	"web/templates/*":     {"web/templates/*", "web/visible"},
	"web/gallery":         {"web/templates/*", "web/static"},
	"internal/server/web": {},

	"internal/drill":          with(domain, "internal/instance", "internal/desk", "internal/engine", "internal/identity", "internal/tools", "internal/workflow"),
	"internal/server":         with(domain, "internal/desk", "internal/identity", "internal/live", "internal/server/*", "web/static"),
	"internal/server/browser": with(domain, "internal/desk", "internal/approvals", "internal/audit", "internal/engine", "internal/identity", "internal/live", "internal/definitions", "internal/workflow", "internal/tools", "internal/server/*", "web/templates/*", "web/static"),
	"internal/server/api":     with(domain, "internal/desk", "internal/approvals", "internal/audit", "internal/engine", "internal/identity", "internal/live", "internal/definitions", "internal/workflow", "internal/tools", "internal/server/*"),
	"internal/server/edge":    with(foundation, "internal/live"),

	"examples":              {},
	"internal/demo/standin": {},
	"internal/demo":         with(domain, "internal/instance", "internal/demo/standin", "internal/desk", "internal/identity", "internal/approvals", "internal/engine", "internal/server", "internal/definitions", "examples"),
	"cmd/console":           {"*"},
	"bench":                 {"*"},

	// Test-only packages: nothing of the product imports them.
	"internal/arch":                    {},
	"internal/testkit":                 domain,
	"internal/telemetry/collectortest": {},
	"internal/engine/enginetest":       {"*"},
	"e2e":                              {"*"},
}

// outside says which packages alone may import a third-party module.
var outside = map[string][]string{
	"modernc.org/sqlite":                    {"internal/store", "internal/testkit", "bench"},
	"github.com/labstack/echo/v4":           {"internal/server", "internal/server/*"},
	"github.com/gorilla/sessions":           {"internal/server", "internal/server/*"},
	"github.com/a-h/templ":                  {"web/*", "internal/server/browser"},
	"cel.dev/cel-go":                        {"internal/expr"},
	"github.com/santhosh-tekuri/jsonschema": {"internal/schema"},
	"github.com/emersion/go-smtp":           {"internal/tools"},
	"github.com/emersion/go-sasl":           {"internal/tools"},
	"go.yaml.in/yaml/v3":                    {"internal/strictyaml"},
	"github.com/alecthomas/kong":            {"cmd/console"},
	"github.com/prometheus":                 {"internal/telemetry"},
	"go.opentelemetry.io":                   {"internal/telemetry", "internal/telemetry/*"},
	"net/http":                              {"internal/tools", "internal/telemetry", "internal/telemetry/*", "internal/server", "internal/server/*", "internal/demo", "internal/demo/*", "internal/notify", "cmd/console", "web/static", "bench", "e2e", "internal/engine/enginetest"},
}

type pkg struct {
	ImportPath string
	Name, Doc  string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Imports,GoFiles", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func matches(patterns []string, path string) bool {
	for _, p := range patterns {
		if p == path || p == "*" || strings.HasSuffix(p, "/*") && strings.HasPrefix(path+"/", strings.TrimSuffix(p, "*")) {
			return true
		}
	}
	return false
}

func rule(path string) ([]string, bool) {
	if r, ok := allowed[path]; ok {
		return r, true
	}
	for p, r := range allowed {
		if strings.HasSuffix(p, "/*") && matches([]string{p}, path) {
			return r, true
		}
	}
	return nil, false
}

func TestImports_FollowTheMap(t *testing.T) {
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		may, ok := rule(path)
		if !ok {
			t.Errorf("package %s is not in the import map: say in internal/arch what it may know", path)
			continue
		}
		for _, imp := range p.Imports {
			in, local := strings.CutPrefix(imp, module)
			if local && !matches(may, in) {
				t.Errorf("%s imports %s, which the import map does not allow: packages below must not know those above", path, in)
			}
			for mod, who := range outside {
				if (imp == mod || strings.HasPrefix(imp, mod+"/")) && !matches(who, path) {
					t.Errorf("%s imports %s; only %v may, so that leaving it touches one place", path, imp, who)
				}
			}
		}
	}
}

func TestPackages_SayWhatTheyAreFor(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue
		}
		if len(p.Doc) < 40 {
			t.Errorf("package %s has no package comment that says what it is for", p.ImportPath)
		}
	}
}
