package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

func TestOperations_ListsEveryWindowAndCause(t *testing.T) {
	raw, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, w := range slices.Concat(engine.Windows, engine.AnswerWindows) {
		if row := "| `" + w.Name + "` | " + w.Means + " |"; !strings.Contains(text, row) {
			t.Errorf("docs/operations.md lacks the row %s", row)
		}
	}
	for _, cause := range []string{engine.CauseUnknown, engine.CauseTampered, engine.CauseVersion, engine.CausePoison,
		engine.CausePerson, desk.CauseDeadEnd, desk.CauseUnanswerable, engine.CauseNotStarted, engine.CauseOverdue} {
		if !strings.Contains(text, "| `"+cause+"` | ") {
			t.Errorf("docs/operations.md does not say what to do about %s", cause)
		}
	}
}
