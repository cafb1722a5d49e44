package api

import (
	"sync"

	"countersign/internal/id"
	"countersign/internal/problem"
)

// Limits of calls that stay open: waiting reads and event streams. The whole
// is below what the hub's listeners may be (edge), so that programs never keep
// pages from being live.
const (
	waitsPerToken = 16
	waitsMax      = 256
)

// waits counts the calls that stay open, by token.
type waits struct {
	mu  sync.Mutex // protects by and all
	by  map[id.Token]int
	all int
}

func newWaits() *waits { return &waits{by: map[id.Token]int{}} }

// enter takes a place for one call of the token; leave gives it back and must
// be called once. Problems: too_many_waits, waits_full.
func (w *waits) enter(token id.Token) (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.by[token] >= waitsPerToken:
		return nil, problem.New(problem.RateLimited, "too_many_waits",
			"This token already has %d calls open that wait or stream, which is as many as one may have. End one, or ask without wait.", waitsPerToken)
	case w.all >= waitsMax:
		return nil, problem.New(problem.RateLimited, "waits_full",
			"Programs already have %d calls open here that wait or stream. Try again in a while, or ask without wait.", waitsMax)
	}
	w.by[token]++
	w.all++
	return func() { w.leave(token) }, nil
}

func (w *waits) leave(token id.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	if w.by[token]--; w.by[token] == 0 {
		delete(w.by, token)
	}
}
