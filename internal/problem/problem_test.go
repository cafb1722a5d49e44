package problem_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"countersign/internal/problem"
)

func TestFrom_HidesForeignErrors(t *testing.T) {
	got := problem.From(errors.New("password=hunter2"))
	if got.Kind != problem.Internal || strings.Contains(got.Message, "hunter2") {
		t.Errorf("From(foreign) = %+v; want internal without the cause in its message", got)
	}
	if !strings.Contains(got.Error(), "hunter2") {
		t.Errorf("Error() = %q; want the cause for the log", got.Error())
	}
}

func TestFrom_FindsAWrappedProblem(t *testing.T) {
	want := problem.New(problem.Conflict, "already_decided", "Ben decided first.")
	got := problem.From(fmt.Errorf("decide: %w", want))
	if got != want {
		t.Errorf("From(wrapped) = %v; want the wrapped problem", got)
	}
	if problem.From(nil) != nil {
		t.Error("From(nil) is not nil")
	}
}

func TestIs_ComparesKindAndCode(t *testing.T) {
	sentinel := problem.New(problem.Conflict, "stale_digest", "")
	err := fmt.Errorf("x: %w", sentinel.With("digest", "sha256:00"))
	if !errors.Is(err, sentinel) {
		t.Error("a copy with details does not match its sentinel")
	}
	if errors.Is(err, problem.New(problem.Conflict, "expired", "")) {
		t.Error("another code matches")
	}
}

func TestCopies_LeaveTheOriginalAlone(t *testing.T) {
	base := problem.New(problem.Invalid, "invalid", "The form has faults.")
	_ = base.At("/a", "missing").With("k", 1).Because(errors.New("c"))
	if len(base.Fields) != 0 || len(base.Details) != 0 || base.Err != nil {
		t.Errorf("base changed: %+v", base)
	}
}
