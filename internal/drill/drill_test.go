package drill_test

import (
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/examples"
	"countersign/internal/drill"
	"countersign/internal/instance"
	"countersign/internal/problem"
)

// order answers what the sample workflows ask of an order.
var order = map[string]json.RawMessage{"shop.order": json.RawMessage(`{"id":"1","state":"paid","currency":"EUR","refundable":100000,"customer":"Nora"}`)}

// folder is somebody's folder with the sample definitions; address stands in
// every tool's configuration.
func folder(t *testing.T, address string) (string, instance.Config) {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"workflows", "tools", "policies"} {
		sub, err := fs.Sub(examples.Files, part)
		if err == nil {
			err = os.CopyFS(filepath.Join(dir, part), sub)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	config, err := instance.LoadConfig(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	config.Values = map[string]string{"shop": "http://" + address + "/shop", "planner": "http://" + address + "/planner", "documents": filepath.Join(dir, "documents"), "kb": filepath.Join(dir, "kb"), "stand_ins": dir}
	return dir, config
}

// branches is a workflow with an action in each of two branches.
const branches = `format: 1
workflow: both
version: 1
steps:
  - id: both
    parallel:
      left:
        - id: pay
          action: shop.refund
          with: {order_id: "1001", amount: 5000, currency: EUR, note: "left"}
      right:
        - id: note
          action: kb.publish
          with: {page: notes/both, body: "right"}
`

func TestRun_NothingIsDoubledLostOrRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		effects int
		people  bool // of the tool nobody can be asked
		windows []string
	}{
		"restart-service": {1, true, []string{"after-effect restart", "after-sent-commit restart"}},
		"both":            {2, false, []string{"after-effect both/left/pay", "after-effect both/right/note", "after-sent-commit both/right/note"}},
		"goodwill":        {1, false, []string{"before-answer-commit details", "after-answer-commit details", "after-effect refund", "before-outcome-commit refund", "after-commit order"}},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "goodwill" {
				t.Skip("short: the workflow with a read, a question and an action")
			}
			t.Parallel()
			dir, config := folder(t, "127.0.0.1:1")
			if err := os.WriteFile(filepath.Join(dir, "workflows", "both.yaml"), []byte(branches), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := drill.Run(t.Context(), drill.Options{Config: config, Workflow: name, Answers: order, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != "completed" || r.Effects != c.effects || r.Findings != 0 || len(r.NotReached) != 0 {
				t.Errorf("the drill reports %+v", r)
			}
			people := 0
			var passed []string
			for _, x := range r.Cases {
				people += x.People
				passed = append(passed, x.Window+" "+x.Step)
				if len(x.Findings) > 0 || x.Effects != c.effects || x.Status != "completed" {
					t.Errorf("%+v", x)
				}
			}
			if (people > 0) != c.people {
				t.Errorf("%d times a person had to say what happened", people)
			}
			for _, w := range c.windows {
				if !slices.Contains(passed, w) {
					t.Errorf("there was no crash at %s, only at %q", w, passed)
				}
			}
		})
	}
}

// What the tools name is never reached, and the folder stays as it is.
func TestRun_SendsNothingAndChangesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{})
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
			close(reached)
		}
	}()
	dir, config := folder(t, l.Addr().String())
	before := contents(t, dir)
	if _, err := drill.Run(t.Context(), drill.Options{Config: config, Workflow: "refund", Answers: order, Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	l.Close()
	select {
	case <-reached:
		t.Error("something was sent")
	default:
	}
	if after := contents(t, dir); !slices.Equal(after, before) {
		t.Errorf("the folder held %q, and holds %q", before, after)
	}
}

func contents(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		all = append(all, path+" "+string(raw))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRun_SaysWhatItCannotKnow(t *testing.T) {
	_, config := folder(t, "127.0.0.1:1")
	_, err := drill.Run(t.Context(), drill.Options{Config: config, Workflow: "refnd", Dir: t.TempDir()})
	if p := problem.From(err); p.Kind != problem.NotFound {
		t.Errorf("a workflow that is not there: %v", err)
	}
	r, err := drill.Run(t.Context(), drill.Options{Config: config, Workflow: "refund", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != "failed" || !strings.Contains(r.Why, "currency") || !slices.Contains(r.NotReached, "summarize") {
		t.Errorf("with answers that do not fit it reports %s (%s), not reached %q", r.Status, r.Why, r.NotReached)
	}
	_, err = drill.Run(t.Context(), drill.Options{Config: config, Workflow: "refund", Input: json.RawMessage(`{"order_id":"x"}`), Dir: t.TempDir()})
	if p := problem.From(err); p.Kind != problem.Invalid {
		t.Errorf("an input that does not fit: %v", err)
	}
}
