package enginetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/internal/engine"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// What the simulated tools declare (see sample.go).
const (
	sendTimeout = 300 * time.Millisecond
	keyTTL      = time.Hour
	settleTime  = 50 * time.Millisecond
)

// landing is one effect that really happened, or is on its way.
type landing struct {
	key string
	at  time.Time // when it takes hold at the target
}

// simTarget is the outside of a simulation and its oracle.
type simTarget struct {
	s        *simulation
	landings []landing
	pin      int
}

var _ engine.World = (*simTarget)(nil)

// happened counts the effects of a key so far.
func (o *simTarget) happened(key string) (n int) {
	for _, l := range o.landings {
		if l.key == key && !l.at.After(time.Now()) {
			n++
		}
	}
	return n
}

// onItsWay reports whether an effect of the key may yet take hold.
func (o *simTarget) onItsWay(key string) bool {
	for _, l := range o.landings {
		if l.key == key && l.at.After(time.Now()) {
			return true
		}
	}
	return false
}

// land makes the effect take hold after the delay. A target that knows keys
// does nothing twice for as long as it remembers the first time.
func (o *simTarget) land(t *tools.Tool, key string, delay time.Duration) {
	at := time.Now().Add(delay)
	if _, keyed := t.CanResend(); keyed {
		for _, l := range o.landings {
			if l.key == key && at.Sub(l.at) < keyTTL {
				return
			}
		}
	}
	o.landings = append(o.landings, landing{key, at})
	o.s.tell("  the target does it, in %s", delay)
}

// Call answers a read.
func (o *simTarget) Call(_ context.Context, _ *tools.Tool, _ tools.Frozen, try tools.Sending) tools.Outcome {
	s := o.s
	s.meanwhile("while reading")
	switch {
	case s.goesWrong(12):
		return tools.Outcome{Status: tools.Failed, Class: tools.ClassTransient, Message: "The target was busy."}
	case s.goesWrong(150):
		return tools.Outcome{Status: tools.Failed, Class: tools.ClassPermanent, Message: "The target did not want to."}
	}
	return tools.Outcome{Status: tools.Confirmed, Output: json.RawMessage(`{"text":"read"}`), Receipt: tools.Receipt{Status: 200}}
}

// Send carries a write out, or loses something on the way.
func (o *simTarget) Send(_ context.Context, t *tools.Tool, frozen tools.Frozen, try tools.Sending) tools.Outcome {
	s := o.s
	s.wantIntent(try.Key, frozen)
	unknown := tools.Outcome{Status: tools.Unknown, Class: tools.ClassUnknown, Code: tools.CodeNoAnswer, Message: "No answer came."}
	switch {
	case s.goesWrong(8):
		s.tell("  the request is lost")
		time.Sleep(sendTimeout)
		return unknown
	case s.goesWrong(6):
		o.land(t, try.Key, time.Duration(s.rng.Int64N(int64(sendTimeout))))
		time.Sleep(sendTimeout)
		s.tell("  its answer is lost")
		return unknown
	case s.goesWrong(8):
		o.land(t, try.Key, 0)
		s.tell("  the target answers 500")
		return unknown
	case s.goesWrong(8):
		s.tell("  the target is busy")
		return tools.Outcome{Status: tools.NotDone, Class: tools.ClassTransient, Message: "The target was busy."}
	case s.goesWrong(30):
		s.tell("  the target refuses")
		return tools.Outcome{Status: tools.Refused, Class: tools.ClassRefused, Message: "The target did not want to."}
	}
	if s.goesWrong(5) {
		time.Sleep(time.Duration(s.rng.Int64N(int64(sendTimeout))))
	}
	o.land(t, try.Key, 0)
	return o.done()
}

func (o *simTarget) done() tools.Outcome {
	return tools.Outcome{Status: tools.Confirmed, Output: json.RawMessage(`{"ok":true}`), ExternalRef: "ext", Receipt: tools.Receipt{Status: 201, ExternalRef: "ext"}}
}

// Query tells what happened, as the real transport would: "it did not" is
// believed only once nothing can be on its way any more.
func (o *simTarget) Query(_ context.Context, _ *tools.Tool, _ tools.Frozen, try tools.Sending) tools.Answer {
	s := o.s
	settled := try.SentAt.Add(sendTimeout + settleTime)
	unknown := tools.Answer{Unknown: true, Outcome: tools.Outcome{Status: tools.Unknown, Message: "Nobody knows yet."}}
	switch {
	case s.goesWrong(6):
		return unknown
	case o.happened(try.Key) > 0 && !(s.goesWrong(4) && !s.now().After(settled)): // else a replica that is behind
		return tools.Answer{Happened: true, Outcome: o.done()}
	case s.now().After(settled):
		return tools.Answer{DidNot: true, Outcome: tools.Outcome{Status: tools.NotDone, Class: tools.ClassTransient, Message: "It did not happen."}}
	}
	unknown.After = settled.Add(time.Millisecond)
	return unknown
}

// StillRunning says no: there are no programs here.
func (o *simTarget) StillRunning(string) (bool, error) { return false, nil }

// Preview shows nothing.
func (o *simTarget) Preview(context.Context, *tools.Tool, tools.Sending) tools.Reading {
	return tools.Reading{OK: true, Met: true}
}

// Precondition answers the version of what would be changed.
func (o *simTarget) Precondition(context.Context, *tools.Tool, tools.Sending) tools.Reading {
	if o.s.goesWrong(15) {
		return tools.Reading{Error: "It could not be read."}
	}
	return tools.Reading{OK: true, Met: true, Pin: json.RawMessage(fmt.Sprint(o.pin))}
}

// wantIntent is invariant I2: what is being sent is durably intended, by a
// ledger row of these bytes whose request somebody, or the policy, agreed to.
func (s *simulation) wantIntent(key string, frozen tools.Frozen) {
	s.t.Helper()
	var effect, request, ruling, approved string
	err := s.db.View(context.Background(), func(ctx context.Context, q store.Querier) error {
		return q.QueryRow(ctx, `SELECT e.status, e.request, r.status, r.request FROM effect e JOIN fake_request r ON r.id = e.approval WHERE e.key = $1`, key).
			Scan(&effect, &request, &ruling, &approved)
	})
	switch {
	case err != nil:
		s.fail("sent without a ledger row: %v", err)
	case effect != engine.Sent:
		s.fail("sent while the ledger says %s", effect)
	case ruling != engine.Approved && ruling != engine.Allowed:
		s.fail("sent while the request is %s", ruling)
	case request != string(frozen) || approved != string(frozen):
		s.fail("sent other bytes than were agreed to")
	}
}
