package desk_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"countersign/internal/audit/receipt"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/instance"
	"countersign/internal/testkit"
)

func TestVerify_ChangedLog_Fails(t *testing.T) {
	cases := map[string]string{
		"a row is changed":             `UPDATE audit_entry SET body = replace(body, 'approved', 'rejected') WHERE action = 'approval.approve'`,
		"a searchable copy is changed": `UPDATE audit_entry SET actor = 'somebody' WHERE action = 'approval.approve'`,
		"a row in the middle is gone":  `DELETE FROM audit_entry WHERE tenant = 'default' AND seq = 3`,
		"the tail is cut":              `DELETE FROM audit_entry WHERE tenant = 'default' AND seq >= (SELECT max(seq) - 1 FROM audit_entry WHERE tenant = 'default')`,
	}
	for what, statement := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			run := w.refund(12_500, engine.WaitingApproval)
			w.approve("ana", w.request("ana", run))
			w.waitFor(run, engine.Completed)
			report, err := w.desk.Verify(t.Context(), w.principal("chloe"))
			w.must(err)
			if !report.OK {
				t.Fatalf("the untouched log does not verify: %+v", report.Findings)
			}
			w.tamper(statement)
			report, err = w.desk.Verify(t.Context(), w.principal("chloe"))
			w.must(err)
			if report.OK || len(report.Findings) == 0 {
				t.Errorf("the log verifies after %s", what)
			}
		})
	}
}

func TestVerify_TailCutTogetherWithItsBookkeeping_Fails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	w.approve("ana", w.request("ana", run))
	w.waitFor(run, engine.Completed)
	// Back to the last head but two, as if what came after had never been.
	w.close()
	testkit.Outsider(t, filepath.Join(w.dir, instance.DatabaseFile),
		`CREATE TABLE upto AS SELECT size FROM audit_head WHERE tenant = 'default' ORDER BY size DESC LIMIT 1 OFFSET 2`,
		`DELETE FROM audit_entry WHERE tenant = 'default' AND seq >= (SELECT size FROM upto)`,
		`DELETE FROM audit_payload WHERE tenant = 'default' AND seq >= (SELECT size FROM upto)`,
		`DELETE FROM audit_head WHERE tenant = 'default' AND size > (SELECT size FROM upto)`,
		`UPDATE audit_log SET size = (SELECT size FROM upto), sealed = (SELECT size FROM upto) WHERE tenant = 'default'`,
		`DROP TABLE upto`)
	_, err := instance.Open(t.Context(), instance.Options{Dir: w.dir, Config: w.config, Drive: true, Holder: "test"})
	w.wantProblem(err, "rolled_back")
	report, err := w.beside().Desk.Verify(t.Context(), desk.Terminal())
	w.must(err)
	if report.OK {
		t.Error("the log verifies although its tail was cut with all its bookkeeping")
	}
}

func TestReceipt_VerifiesWithThePublicKeyAloneAndNoByteMayChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	a := w.request("ana", run)
	w.approve("ana", a)
	w.waitFor(run, engine.Completed)
	file, err := w.desk.Receipt(t.Context(), w.principal("ben"), a.ID)
	w.must(err)
	head, err := w.desk.Head(t.Context(), w.principal("chloe"))
	w.must(err)
	w.close() // nothing but the file and the key from here on
	report, err := receipt.Check(file, head.PublicKey)
	w.must(err)
	if report.Approval != a.ID || report.Digest != a.Digest || len(report.Facts) < 3 {
		t.Errorf("the receipt proves %+v, want ruling, decision and effect of %s", report, a.ID)
	}
	rng := rand.New(rand.NewPCG(1, 2)) // the same flips every time
	for range 200 {
		at, bit := rng.IntN(len(file)), byte(1)<<rng.IntN(8)
		bad := append([]byte{}, file...)
		bad[at] ^= bit
		if _, err := receipt.Check(bad, head.PublicKey); err == nil {
			t.Errorf("the receipt verifies with byte %d flipped from %q to %q", at, file[at], bad[at])
		}
	}
}
