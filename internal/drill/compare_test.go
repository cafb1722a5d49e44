package drill

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign/internal/engine"
)

// Whatever must not be is found, and nothing else is.
func TestCompare_FindsWhatMustNotBe(t *testing.T) {
	calm := outcome{run: engine.Run{ID: "run_a", Status: engine.Completed, Output: json.RawMessage(`{"of":"run_a"}`)}, reads: map[string]int{"r": 1}, effects: map[string]int{"k": 1}}
	fine := func() outcome {
		return outcome{run: engine.Run{ID: "run_b", Status: engine.Completed, Output: json.RawMessage(`{"of":"run_b"}`)}, crashed: true, reads: map[string]int{"r": 2}, effects: map[string]int{"k": 1}, traces: 1}
	}
	for says, change := range map[string]func(*outcome){
		"":                                   func(*outcome) {},
		"did not come to this instant again": func(o *outcome) { o.crashed = false },
		"the key k happened 2 times":         func(o *outcome) { o.effects["k"] = 2 },
		"0 effects happened":                 func(o *outcome) { delete(o.effects, "k") },
		"step look had finished":             func(o *outcome) { o.redone = []string{"look"} },
		"the run ended blocked":              func(o *outcome) { o.run.Status = engine.Blocked },
		"the output differs":                 func(o *outcome) { o.run.Output = json.RawMessage(`{"of":"run_c"}`) },
		"changed its trace":                  func(o *outcome) { o.traces = 2 },
		"the audit log does not verify: cut": func(o *outcome) { o.audit = "cut" },
	} {
		again := fine()
		change(&again)
		c := compare(point{"after-effect", "send", 1}, calm, again)
		found := strings.Join(c.Findings, "\n")
		if says == "" && found != "" || !strings.Contains(found, says) {
			t.Errorf("found %q, want %q", found, says)
		}
		if c.Repeated != 1 {
			t.Errorf("%d reads were repeated, want 1", c.Repeated)
		}
	}
}
