// Package live tells pages of this process that something changed: a topic
// and the id it concerns, nothing more.
//
// It guarantees that publishing never waits: a listener that is too slow is
// told to reset instead, and whoever reconnects with the id of the last event
// seen gets what came after it, or one reset when that is no longer known. A
// lost hint costs a refetch, never a fact. It must not know what topics mean.
package live

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Limits of the hub.
const (
	keep     = 512 // events remembered for reconnecting listeners
	buffered = 64  // events a listener may lag behind before it is reset
)

// Reset is the topic of the event that says: what you know may be stale,
// fetch everything you show again.
const Reset = "reset"

// Event says that Subject changed under Topic. ID is `epoch-counter`; the
// epoch is that of the process, so an id of an earlier process is unknown.
type Event struct {
	ID      string `json:"id"`
	Topic   string `json:"topic"`
	Subject string `json:"subject"`
}

// Hub spreads events to its listeners.
type Hub struct {
	epoch string

	mu        sync.Mutex // protects all below
	next      uint64
	past      []Event
	listeners map[*Listener]struct{}
	closed    bool
}

// Listener receives the events published after it subscribed. C is closed
// when the listener or the hub is.
type Listener struct {
	C   <-chan Event
	c   chan Event
	hub *Hub
	lag bool // protected by hub.mu: the next event must be a reset
}

// NewHub returns a hub whose event ids begin with epoch.
func NewHub(epoch int64) *Hub {
	return &Hub{epoch: strconv.FormatInt(epoch, 10), next: 1, listeners: map[*Listener]struct{}{}}
}

// Publish tells every listener that subject changed. It never blocks.
func (h *Hub) Publish(topic, subject string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	e := Event{ID: fmt.Sprintf("%s-%d", h.epoch, h.next), Topic: topic, Subject: subject}
	h.next++
	h.past = append(h.past, e)
	if len(h.past) > keep {
		h.past = append(h.past[:0:0], h.past[len(h.past)-keep:]...)
	}
	for l := range h.listeners {
		l.offer(e)
	}
}

func (l *Listener) offer(e Event) {
	if l.lag {
		e = Event{ID: e.ID, Topic: Reset}
	}
	select {
	case l.c <- e:
		l.lag = false
	default:
		l.lag = true
	}
}

// Subscribe starts a listener. lastID is the id of the last event it saw, or
// empty; an id this hub no longer knows yields one reset first.
func (h *Hub) Subscribe(lastID string) *Listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	missed := h.since(lastID)
	c := make(chan Event, buffered+len(missed))
	l := &Listener{C: c, c: c, hub: h}
	if h.closed {
		close(c)
		return l
	}
	for _, e := range missed {
		c <- e
	}
	h.listeners[l] = struct{}{}
	return l
}

// since returns the events after lastID, or a reset if that is unknown. h.mu
// is held.
func (h *Hub) since(lastID string) []Event {
	if lastID == "" {
		return nil
	}
	epoch, counter, _ := strings.Cut(lastID, "-")
	n, err := strconv.ParseUint(counter, 10, 64)
	oldest := h.next - uint64(len(h.past))
	if err != nil || epoch != h.epoch || n >= h.next || n+1 < oldest {
		return []Event{{ID: fmt.Sprintf("%s-%d", h.epoch, h.next-1), Topic: Reset}}
	}
	return append([]Event(nil), h.past[n+1-oldest:]...)
}

// Last is the id of the event that was published last: whoever subscribes with
// it hears all that come after this moment.
func (h *Hub) Last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("%s-%d", h.epoch, h.next-1)
}

// Close ends the listener; it may be called twice.
func (l *Listener) Close() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if _, ok := l.hub.listeners[l]; ok {
		delete(l.hub.listeners, l)
		close(l.c)
	}
}

// Close ends every listener and refuses new ones; it may be called twice.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	for l := range h.listeners {
		close(l.c)
	}
	clear(h.listeners)
}

// Listening returns how many listeners there are now.
func (h *Hub) Listening() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.listeners)
}
