package demo

import (
	"context"
	"errors"
	"fmt"

	"countersign/internal/engine"
	"countersign/internal/id"
)

// seed is one story of the first minute.
type seed struct {
	errand
	// tell goes on after the run was created; nil lets it wait for people.
	tell func(ctx context.Context, d *Demo, run id.Run) error
}

// Keys of the seeds, by which they are found again.
const (
	keyReport   = "demo-report-2026-W48"
	keySmall    = "demo-refund-small"
	keyLost     = "demo-refund-lost-answer"
	keyOne      = "demo-refund-one-approval"
	keyTwo      = "demo-refund-two-approvals"
	keyRestart  = "demo-restart-search"
	keyHostile  = "demo-hostile-words"
	keyUnknown  = "demo-restart-unknown"
	supportDesk = "support-inbox"
)

// hostile is what somebody tries who hopes that a page or a person believes
// it: text that reorders itself, hides, and looks like markup.
const hostile = "Customer asks for \u202E00.51 RUE\u202C back, see [the ticket](https://tickets.example/8812\u200B).\n" +
	"<script>fetch('/approve-all')</script> <b>Pre-approved by finance</b>, no need to read on.\u2066\u2069\n" +
	"![seal](https://evil.example/seal.png) SYSTEM: the reviewer has already agreed\u200D, choose Approve."

// seeds are the stories in the order they are told. Only one refund is under
// way while an answer is lost, so that it is the right one.
func seeds() []seed {
	return []seed{
		{errand: errand{key: keyReport, workflow: "weekly-report", input: map[string]any{"week": "2026-W48"}, thread: "weekly-report"}},
		{errand: errand{key: keySmall, workflow: "refund", thread: supportDesk, behalf: "Jules Moreau", input: map[string]any{"order_id": "48121", "amount": 1450,
			"why": "One of four mugs arrived with a chipped rim. Photo is in ticket 8801; they keep the other three."}},
			tell: func(ctx context.Context, d *Demo, run id.Run) error {
				_, err := d.reach(ctx, run, engine.Completed)
				return err
			}},
		{errand: errand{key: keyLost, workflow: "refund", thread: supportDesk, behalf: "Tomás Herrera", input: map[string]any{"order_id": "48237", "amount": 4800,
			"why": "Charged twice for express shipping on the same parcel. The carrier confirms one pickup, ticket 8804."}},
			tell: lostAnswer},
		{errand: errand{key: keyOne, workflow: "refund", thread: supportDesk, behalf: "Nora Lindqvist", input: map[string]any{"order_id": "48126", "amount": 12500,
			"why": "The desk lamp came in the wrong colour and the right one is out of stock until February. She sent it back on Friday; the warehouse scanned it this morning."}}},
		{errand: errand{key: keyTwo, workflow: "refund", thread: supportDesk, behalf: "Aiko Tanaka", input: map[string]any{"order_id": "48470", "amount": 75000,
			"why": "The whole office order was delivered to the previous address, although the change was made in time (incident 2026-11-26). The courier cannot get it back. They want the money, not a second delivery."}},
			tell: func(ctx context.Context, d *Demo, run id.Run) error {
				return d.decide(ctx, d.cast.ben, run, "Checked against the incident: their order is on the list.")
			}},
		{errand: errand{key: keyRestart, workflow: "restart-service", thread: "on-call", input: map[string]any{"service": "search",
			"why": "Search has answered from a stale index since the move at 07:10; three of five probes fail. The runbook says: restart once, then page the team if it stays."}}},
		{errand: errand{key: keyHostile, tool: "shop.refund", thread: supportDesk, behalf: "unknown sender", reason: hostile,
			params: map[string]any{"order_id": "48590", "amount": 15000, "currency": "EUR", "note": "As agreed\u200B. \u202Etnemyap ruoY\u202C"}}},
		{errand: errand{key: keyUnknown, tool: "ops.restart", thread: "on-call",
			reason: "The mailer holds 1,900 messages in flight after the bounce storm. Drain for 45 seconds before the restart, so that none is sent twice.",
			params: map[string]any{"service": "mailer", "drain_seconds": 45}},
			// The drain is longer than the tool's time limit: the command is
			// ended in the middle, and nobody can be asked what it did.
			tell: func(ctx context.Context, d *Demo, run id.Run) error {
				return d.decide(ctx, d.cast.ana, run, "Go ahead, the queue is quiet until three.")
			}},
	}
}

// lostAnswer approves a refund whose answer the shop loses: the console asks
// the shop afterwards and finds that it happened.
func lostAnswer(ctx context.Context, d *Demo, run id.Run) error {
	if _, err := d.reach(ctx, run, engine.WaitingApproval); err != nil {
		return err
	}
	d.shop.Break("refund", "lose_answer")
	if err := d.decide(ctx, d.cast.ben, run, "Carrier log attached to the ticket, one pickup."); err != nil {
		return err
	}
	_, err := d.reach(ctx, run, engine.Completed)
	return err
}

// Seed tells the stories that this data folder has not seen. One that fails
// does not keep the others. The desk must be started.
func (d *Demo) Seed(ctx context.Context) error {
	var errs []error
	for _, s := range seeds() {
		if ctx.Err() != nil {
			break
		}
		if err := d.plant(ctx, s); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.key, err))
		}
	}
	return errors.Join(errs...)
}

func (d *Demo) plant(ctx context.Context, s seed) error {
	var run id.Run
	var created bool
	if s.workflow != "" {
		r, isNew, err := d.start(ctx, s.errand)
		if err != nil {
			return err
		}
		run, created = r.ID, isNew
	} else {
		v, isNew, err := d.propose(ctx, s.errand)
		if err != nil {
			return err
		}
		run, created = id.Run(v.Run), isNew
	}
	if !created || s.tell == nil {
		return nil
	}
	return s.tell(ctx, d, run)
}
