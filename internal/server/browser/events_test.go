package browser

import (
	"strings"
	"testing"

	"countersign/internal/engine"
	"countersign/internal/workflow"
)

func TestEventWords_EveryKindHasWords(t *testing.T) {
	for _, kind := range workflow.Kinds {
		got := eventWords(engine.Checkpoint{Event: []byte(`{"kind":"` + string(kind) + `"}`)})
		if got == "" || strings.Contains(got, "_") || eventWord[kind] == "" {
			t.Errorf("the event %s is shown as %q, want words", kind, got)
		}
	}
	for event, want := range map[string]string{`{"kind":"moon_rose"}`: "moon rose", `{}`: "cannot be read", `[`: "cannot be read"} {
		if got := eventWords(engine.Checkpoint{Event: []byte(event)}); got != want {
			t.Errorf("event %s is shown as %q, want %q", event, got, want)
		}
	}
}
