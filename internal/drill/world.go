package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"countersign/internal/canon"
	"countersign/internal/engine"
	"countersign/internal/tools"
)

// target stands in for everything that tools reach. It reaches nothing, answers
// every call, and keeps the ledger that findings are made of: it outlives the
// crashes.
type target struct {
	answers map[string]json.RawMessage // by tool

	mu      sync.Mutex
	reads   map[string]int // executions by idempotency key
	effects map[string]int // what happened, by idempotency key
	outputs map[string]json.RawMessage
}

var _ engine.World = (*target)(nil)

func newTarget(answers map[string]json.RawMessage) *target {
	return &target{answers: answers, reads: map[string]int{}, effects: map[string]int{}, outputs: map[string]json.RawMessage{}}
}

// Call answers a read.
func (t *target) Call(_ context.Context, tool *tools.Tool, _ tools.Frozen, s tools.Sending) tools.Outcome {
	t.mu.Lock()
	t.reads[s.Key]++
	t.mu.Unlock()
	return t.done(tool)
}

// Send makes the effect. A target that knows idempotency keys makes it once a
// key; any other as often as it is told to.
func (t *target) Send(_ context.Context, tool *tools.Tool, _ tools.Frozen, s tools.Sending) tools.Outcome {
	o := t.done(tool)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, knowsKeys := tool.CanResend(); o.Status == tools.Confirmed && (t.effects[s.Key] == 0 || !knowsKeys) {
		t.effects[s.Key]++
		t.outputs[s.Key] = o.Output
	}
	return o
}

// output is what an effect gave.
func (t *target) output(key string) json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.outputs[key]
}

// Query says what happened.
func (t *target) Query(_ context.Context, tool *tools.Tool, _ tools.Frozen, s tools.Sending) tools.Answer {
	if t.happened(s.Key) {
		return tools.Answer{Happened: true, Outcome: t.done(tool), Evidence: json.RawMessage(`{"drill":"it happened"}`)}
	}
	return tools.Answer{DidNot: true, Outcome: tools.Outcome{Status: tools.NotDone, Class: tools.ClassTransient, Message: "The drill's target says that it did not happen."},
		Evidence: json.RawMessage(`{"drill":"it did not happen"}`)}
}

// StillRunning is never the case: nothing is started.
func (t *target) StillRunning(string) (bool, error) { return false, nil }

// Preview shows nothing.
func (t *target) Preview(context.Context, *tools.Tool, tools.Sending) tools.Reading {
	return tools.Reading{OK: true, Met: true}
}

// Precondition always holds, at the same version.
func (t *target) Precondition(context.Context, *tools.Tool, tools.Sending) tools.Reading {
	return tools.Reading{OK: true, Met: true, Pin: json.RawMessage(`"drill"`)}
}

func (t *target) happened(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.effects[key] > 0
}

// counts are the ledger as it is now.
func (t *target) counts() (reads, effects map[string]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.reads), maps.Clone(t.effects)
}

// done is the outcome of whatever was asked: the answer that was given for the
// tool, or one made from its output schema.
func (t *target) done(tool *tools.Tool) tools.Outcome {
	output, err := t.answer(tool)
	if err != nil {
		return tools.Outcome{Status: tools.Refused, Class: tools.ClassPermanent, Code: "drill_answer",
			Message: fmt.Sprintf("The drill cannot make up an answer of %s (%v). Give one with --answers.", tool.Name, err)}
	}
	return tools.Outcome{Status: tools.Confirmed, Output: output, ExternalRef: "drill"}
}

func (t *target) answer(tool *tools.Tool) (json.RawMessage, error) {
	if given, ok := t.answers[tool.Name]; ok {
		return canon.Canonical(given, canon.DefaultLimits)
	}
	shape := tool.OutputSchema()
	if shape == nil {
		return json.RawMessage("{}"), nil
	}
	v, err := shape.Example()
	if err != nil {
		return nil, err
	}
	return canon.Marshal(v)
}
