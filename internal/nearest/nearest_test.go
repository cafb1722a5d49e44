package nearest_test

import (
	"strings"
	"testing"

	"countersign/internal/nearest"
)

func TestWord_SuggestsOnlyWhatIsNear(t *testing.T) {
	known := []string{"approvers", "timeout", "steps", "idempotency_key", "id", "if", "on_reject", "with"}
	for word, want := range map[string]string{
		"aprovers": "approvers", "time_out": "timeout", "Steps": "steps", "idempotency-key": "idempotency_key", "idempotencyKey": "idempotency_key",
		"wiht": "with", "on-reject": "on_reject", "onreject": "on_reject", "approver": "approvers", "step": "steps",
		"zzz": "", "x": "", "": "", "retry": "", strings.Repeat("a", 65): "", "di": "id",
	} {
		if got := nearest.Word(word, known); got != want {
			t.Errorf("Word(%q) = %q; want %q", word, got, want)
		}
	}
	if got := nearest.Word("abc", nil); got != "" {
		t.Errorf("Word with nothing known = %q", got)
	}
	if got := nearest.Word("abc", []string{"", strings.Repeat("abc", 30)}); got != "" {
		t.Errorf("Word among the empty and the endless = %q", got)
	}
}
