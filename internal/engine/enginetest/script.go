package enginetest

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"countersign/internal/engine"
	"countersign/internal/tools"
)

// Script is a world whose answers a test writes. What is nil answers as a
// world in which everything works. It counts what reaches it.
type Script struct {
	OnCall    func(ctx context.Context, t *tools.Tool, s tools.Sending) tools.Outcome
	OnSend    func(ctx context.Context, t *tools.Tool, s tools.Sending) tools.Outcome
	OnQuery   func(ctx context.Context, t *tools.Tool, s tools.Sending) tools.Answer
	OnPre     func(t *tools.Tool) tools.Reading
	OnRunning func(effect string) (bool, error)

	mu    sync.Mutex
	calls map[string]int // by what and tool
}

var _ engine.World = (*Script)(nil)

func (s *Script) count(what string, t *tools.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[what+" "+t.Name]++
}

// Count tells how often the tool was reached: what is call, send, query or pre.
func (s *Script) Count(what, tool string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[what+" "+tool]
}

// Done is the outcome of a call that worked.
func Done(output string) tools.Outcome {
	return tools.Outcome{Status: tools.Confirmed, Output: json.RawMessage(output), ExternalRef: "ext-1", Receipt: tools.Receipt{Status: 200, At: time.Unix(0, 0).UTC()}}
}

// Call answers a read.
func (s *Script) Call(ctx context.Context, t *tools.Tool, f tools.Frozen, try tools.Sending) tools.Outcome {
	s.count("call", t)
	if s.OnCall != nil {
		return s.OnCall(ctx, t, try)
	}
	return Done(`{"text":"read"}`)
}

// Send answers a write.
func (s *Script) Send(ctx context.Context, t *tools.Tool, f tools.Frozen, try tools.Sending) tools.Outcome {
	s.count("send", t)
	if s.OnSend != nil {
		return s.OnSend(ctx, t, try)
	}
	return Done(`{"ok":true}`)
}

// Query answers a question.
func (s *Script) Query(ctx context.Context, t *tools.Tool, f tools.Frozen, try tools.Sending) tools.Answer {
	s.count("query", t)
	if s.OnQuery != nil {
		return s.OnQuery(ctx, t, try)
	}
	return tools.Answer{Unknown: true}
}

// StillRunning says whether a child lives.
func (s *Script) StillRunning(effect string) (bool, error) {
	if s.OnRunning != nil {
		return s.OnRunning(effect)
	}
	return false, nil
}

// Preview shows nothing.
func (s *Script) Preview(context.Context, *tools.Tool, tools.Sending) tools.Reading {
	return tools.Reading{OK: true, Met: true}
}

// Precondition answers a reading.
func (s *Script) Precondition(_ context.Context, t *tools.Tool, _ tools.Sending) tools.Reading {
	s.count("pre", t)
	if s.OnPre != nil {
		return s.OnPre(t)
	}
	return tools.Reading{OK: true, Met: true, Pin: json.RawMessage(`"v1"`)}
}
