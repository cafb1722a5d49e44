package enginetest_test

import (
	"os"
	"testing"

	"countersign/internal/engine"
	"countersign/internal/engine/enginetest"
)

func TestMain(m *testing.M) {
	enginetest.RunEffect()
	enginetest.RunChild()
	os.Exit(m.Run())
}

// Every kind of tool is killed for real in every window around its effect, and
// one of them in every window there is.
func TestKill_LeavesNothingDoubledAndNothingHidden(t *testing.T) {
	around := map[string]bool{"before-sent-commit:write": true, "after-sent-commit:write": true, "after-effect:write": true,
		"before-outcome-commit:write": true, "after-commit:write": true}
	for _, p := range enginetest.Points() {
		if p.Policy != engine.Pending || !around[p.Point] && p.Kind.Tool != "write.plain" {
			continue
		}
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			p.Kill(t)
		})
	}
}

// A run that asks is killed for real in every window of its question and of the
// answer.
func TestKill_LeavesOneAnswer(t *testing.T) {
	for _, point := range enginetest.AskPoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			enginetest.KillAsking(t, point)
		})
	}
}
