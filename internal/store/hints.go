package store

import (
	"log/slog"
	"runtime/debug"
	"sync"
)

// hints runs AfterCommit functions in the order of the commits, one at a time
// and outside the writer. Beyond hintsMax waiting ones new ones are dropped:
// they are hints.
type hints struct {
	log  *slog.Logger
	wake chan struct{} // holds one token when list may be non-empty
	done chan struct{}

	mu      sync.Mutex // protects what follows
	list    []func()
	dropped uint64
	closed  bool
}

func newHints(log *slog.Logger) *hints {
	return &hints{log: log, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (h *hints) add(fns []func()) {
	if len(fns) == 0 {
		return
	}
	h.mu.Lock()
	room := min(hintsMax-len(h.list), len(fns))
	h.list = append(h.list, fns[:room]...)
	h.dropped += uint64(len(fns) - room)
	h.mu.Unlock()
	h.signal()
}

func (h *hints) signal() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// run is the goroutine; it ends after close, when the list is empty.
func (h *hints) run() {
	defer close(h.done)
	for range h.wake {
		list, closed := h.take()
		for _, fn := range list {
			h.call(fn)
		}
		if closed {
			return
		}
	}
}

func (h *hints) take() ([]func(), bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.list
	h.list = nil
	return list, h.closed
}

func (h *hints) call(fn func()) {
	defer func() {
		if v := recover(); v != nil {
			h.log.Error("after-commit function panicked", "value", v, "stack", string(debug.Stack()))
		}
	}()
	fn()
}

// close has the rest run and waits for it.
func (h *hints) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.signal()
	<-h.done
}
