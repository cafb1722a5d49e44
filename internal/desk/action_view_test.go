package desk

import (
	"strings"
	"testing"

	"countersign/internal/engine"
)

// Whatever the state, the words must not say of what may have happened that
// it did not.
func TestAdvice_SaysNotRunOnlyWhereNothingWasSent(t *testing.T) {
	for status, notRun := range map[string]bool{"pending": true, "approved": true, "rejected": true, "denied": true, "expired": true,
		engine.Sent: false, engine.Unknown: false, engine.Confirmed: false, engine.Refused: true} {
		if got := advice(ActionView{Status: status}, engine.Run{}); strings.HasPrefix(got, "Not run") != notRun {
			t.Errorf("of an action that is %s the advice is %q", status, got)
		}
	}
}
