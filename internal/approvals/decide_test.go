package approvals_test

import (
	"testing"

	"countersign/internal/approvals"
)

func TestDecide_OneApproverCompletes(t *testing.T) {
	d := newDesk(t)
	r := d.ask(role("finance", 1))
	wantStatus(t, r, approvals.Pending)
	r = d.approve("ana", r)
	wantStatus(t, r, approvals.Approved)
}
