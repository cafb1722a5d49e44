package desk

import (
	"context"
	"sync"
	"time"

	"countersign/internal/audit"
	"countersign/internal/store"
)

// posture remembers when the log was verified last, for the line at the top
// of every page.
type posture struct {
	mu      sync.Mutex // protects the fields below
	at      time.Time
	entries int64
	ok      bool
}

func (p *posture) verified(r audit.Report, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.ok, p.entries = at, r.OK, 0
	for _, t := range r.Tenants {
		if t.Tenant == Tenant {
			p.entries = t.Entries
		}
	}
}

// Posture is what the line at the top says.
type Posture struct {
	Verified   bool // the log was verified since this process started, and holds
	Failed     bool // it was, and does not; or it does not fit the heads that were copied beside it
	VerifiedAt time.Time
	Entries    int64
	Unknown    int // effects whose outcome nobody knows
}

// Posture returns the present state of what the console promises.
func (d *Desk) Posture(ctx context.Context) (out Posture, err error) {
	d.posture.mu.Lock()
	known := !d.posture.at.IsZero()
	out = Posture{Verified: known && d.posture.ok, Failed: known && !d.posture.ok, VerifiedAt: d.posture.at, Entries: d.posture.entries}
	d.posture.mu.Unlock()
	if d.log.Trouble() != "" {
		out.Verified, out.Failed = false, true
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		unknown, err := d.engine.UnknownEffects(ctx, q, Tenant)
		out.Unknown = len(unknown)
		return err
	})
	return out, err
}
