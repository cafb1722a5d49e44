package engine

import (
	"context"
	"encoding/json"
	"time"

	"countersign/internal/id"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// Engine drives runs.
type Engine struct{ o Options }

// Filter narrows a list of runs. Empty fields do not.
type Filter struct {
	Tenant    string
	Status    string
	Workflow  string
	Initiator string
	Thread    string
	Q         string // part of the id or the run key
	Since     time.Time
	Cursor    string // from the page before
	Limit     int    // 1 to 200; 0: 50
}

// Refrozen is what a changed set of parameters becomes.
type Refrozen struct {
	Params                  json.RawMessage
	Request                 tools.Frozen
	Summary, Target, Impact string
	Preview, Precondition   *tools.Reading
}

func New(o Options) *Engine                       { panic("building") }
func (e *Engine) Start(ctx context.Context) error { panic("building") }
func (e *Engine) Stop(ctx context.Context) error  { panic("building") }
func (e *Engine) Create(ctx context.Context, tx *store.Tx, c Creation) (Run, bool, error) {
	panic("building")
}
func (e *Engine) Drive(ctx context.Context, run id.Run) (Run, error) { panic("building") }
func (e *Engine) DriveFrom(ctx context.Context, run id.Run, expected int64, by Actor) (Run, error) {
	panic("building")
}
func (e *Engine) Resume(ctx context.Context, run id.Run, expected int64, by Actor) (Resumed, error) {
	panic("building")
}
func (e *Engine) Cancel(ctx context.Context, run id.Run, reason string, by Actor) (Run, error) {
	panic("building")
}
func (e *Engine) Wake(ctx context.Context, tx *store.Tx, run id.Run) error { panic("building") }
func (e *Engine) Resolve(ctx context.Context, effect id.Effect, r Resolution, by Actor) (Effect, error) {
	panic("building")
}
func (e *Engine) Refreeze(ctx context.Context, t *tools.Tool, params json.RawMessage) (Refrozen, error) {
	panic("building")
}

// KeyFor is the idempotency key a revision of the action with this request has.
func (e *Engine) KeyFor(ctx context.Context, q store.Querier, tenant string, action id.Action, request tools.Frozen) (string, error) {
	panic("building")
}
func (e *Engine) Run(ctx context.Context, q store.Querier, tenant string, run id.Run) (Run, error) {
	panic("building")
}
func (e *Engine) RunByKey(ctx context.Context, q store.Querier, tenant, key string) (Run, error) {
	panic("building")
}
func (e *Engine) Runs(ctx context.Context, q store.Querier, f Filter) (runs []Run, next string, err error) {
	panic("building")
}
func (e *Engine) Steps(ctx context.Context, q store.Querier, tenant string, run id.Run) ([]Step, error) {
	panic("building")
}
func (e *Engine) Checkpoints(ctx context.Context, q store.Querier, tenant string, run id.Run) ([]Checkpoint, error) {
	panic("building")
}
func (e *Engine) State(ctx context.Context, q store.Querier, tenant string, run id.Run) (workflow.State, error) {
	panic("building")
}
func (e *Engine) Effects(ctx context.Context, q store.Querier, tenant string, run id.Run) ([]Effect, error) {
	panic("building")
}
func (e *Engine) Effect(ctx context.Context, q store.Querier, tenant string, effect id.Effect) (Effect, error) {
	panic("building")
}
func (e *Engine) UnknownEffects(ctx context.Context, q store.Querier, tenant string) ([]Effect, error) {
	panic("building")
}
func (e *Engine) Attention(ctx context.Context, q store.Querier, tenant string) ([]Attention, error) {
	panic("building")
}
