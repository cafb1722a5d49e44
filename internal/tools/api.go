package tools

import (
	"context"
	"encoding/json"
	"errors"
)

type code struct{}

var errNotYet = errors.New("tools: not built yet")

// Compile reads a definition.
func Compile(file string, src []byte) (*Tool, error) { return nil, errNotYet }

// Load gives a tool back from its compiled form.
func Load(compiled json.RawMessage) (*Tool, error) { return nil, errNotYet }

// PrepareParams applies defaults and validates; the result is canonical.
func (t *Tool) PrepareParams(v json.RawMessage) (json.RawMessage, error) { return nil, errNotYet }

// Describe computes summary, target and impact.
func (t *Tool) Describe(params json.RawMessage, cfg Config) (Description, error) {
	return Description{}, errNotYet
}

// Freeze resolves the request but for secrets.
func (t *Tool) Freeze(params json.RawMessage, cfg Config) (Frozen, error) { return nil, errNotYet }

// Call carries out a read tool.
func (w *World) Call(ctx context.Context, t *Tool, f Frozen, s Sending) Outcome { return Outcome{} }

// Send carries out a write tool, once.
func (w *World) Send(ctx context.Context, t *Tool, f Frozen, s Sending) Outcome { return Outcome{} }

// Query asks what happened.
func (w *World) Query(ctx context.Context, t *Tool, f Frozen, s Sending) Answer { return Answer{} }

// StillRunning reports whether a child of an earlier try still lives.
func (w *World) StillRunning(effect string) (bool, error) { return false, errNotYet }

// Preview asks the target what would happen.
func (w *World) Preview(ctx context.Context, t *Tool, params json.RawMessage, cfg Config) Reading {
	return Reading{}
}

// Precondition reads what must hold and its pin.
func (w *World) Precondition(ctx context.Context, t *Tool, params json.RawMessage, cfg Config) Reading {
	return Reading{}
}
