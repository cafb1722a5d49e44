package desk

import (
	"context"
	"sync"
	"time"

	"countersign/internal/id"
	"countersign/internal/store"
)

// sweepEvery is how late, at most, an overdue request is shown as expired. A
// decision is refused at the deadline itself, whether or not this ran.
const sweepEvery = 2 * time.Second

// sweeper expires requests whose deadline passed and wakes their runs.
type sweeper struct {
	desk *Desk

	mu   sync.Mutex // protects quit and done
	quit chan struct{}
	done chan struct{}
}

func newSweeper(d *Desk) *sweeper { return &sweeper{desk: d} }

func (s *sweeper) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quit != nil {
		return
	}
	s.quit, s.done = make(chan struct{}), make(chan struct{})
	go s.run(s.quit, s.done)
}

func (s *sweeper) stop() {
	s.mu.Lock()
	quit, done := s.quit, s.done
	s.quit, s.done = nil, nil
	s.mu.Unlock()
	if quit != nil {
		close(quit)
		<-done
	}
}

func (s *sweeper) run(quit, done chan struct{}) {
	defer close(done)
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if err := s.desk.Sweep(context.Background()); err != nil {
			s.desk.logger.Error("expire overdue requests", "cause", err)
		}
		select {
		case <-ticker.C:
		case <-quit:
			return
		}
	}
}

// Sweep expires every request that is due, each in a transaction of its own,
// so that one that cannot be expired does not keep the others.
func (d *Desk) Sweep(ctx context.Context) error {
	var due []id.Approval
	err := d.db.View(ctx, func(ctx context.Context, q store.Querier) (err error) {
		due, err = d.book.Due(ctx, q, Tenant, d.now())
		return err
	})
	if err != nil {
		return err
	}
	for _, request := range due {
		if e := d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error { return d.expireAndWake(ctx, tx, request) }); e != nil {
			err = e
			d.logger.Error("expire a request", "approval", request, "cause", e)
		}
	}
	return err
}

func (d *Desk) expireAndWake(ctx context.Context, tx *store.Tx, request id.Approval) error {
	r, err := d.expire(ctx, tx, request)
	if err != nil {
		return err
	}
	return d.engine.Wake(ctx, tx, r.Run)
}
