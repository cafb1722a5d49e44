package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// Limits of a run's own words, in bytes.
const (
	runKeyBytesMax = 200
	threadBytesMax = 200
)

// Create makes a queued run in the transaction, or returns the one that has
// the run key already, when workflow and input are the same; with others it is
// a conflict that names the run. The second result says whether it was made.
func (e *Engine) Create(ctx context.Context, tx *store.Tx, c Creation) (Run, bool, error) {
	if err := c.check(); err != nil {
		return Run{}, false, err
	}
	if c.Key != "" {
		r, err := oneRun(ctx, tx, "tenant = $1 AND key = $2", c.Tenant, c.Key)
		if err == nil {
			return e.again(ctx, tx, c, r)
		}
		if !errors.Is(err, errNoRun) {
			return Run{}, false, err
		}
	}
	r, err := e.insert(ctx, tx, c)
	if err != nil {
		return Run{}, false, err
	}
	tx.AfterCommit(e.hint)
	tx.AfterCommit(func() { e.notify("runs", string(r.ID)) })
	return r, true, nil
}

func (c *Creation) check() error {
	switch {
	case len(c.Key) > runKeyBytesMax:
		return problem.New(problem.Invalid, "run_key", "The run key is %d bytes long; at most %d are allowed.", len(c.Key), runKeyBytesMax).At("/run_key", "too long")
	case len(c.Thread) > threadBytesMax:
		return problem.New(problem.Invalid, "thread", "The thread is %d bytes long; at most %d are allowed.", len(c.Thread), threadBytesMax).At("/thread", "too long")
	case len(c.OnBehalfOf) > threadBytesMax:
		return problem.New(problem.Invalid, "on_behalf_of", "Whom this is for is %d bytes long; at most %d are allowed.", len(c.OnBehalfOf), threadBytesMax).At("/on_behalf_of", "too long")
	}
	for _, name := range c.Workflow.Tools {
		if c.Tools[name] == "" {
			return fmt.Errorf("engine: create run of %s: no version of tool %s was given", c.Workflow.Name, name)
		}
	}
	if len(c.Versions) == 0 {
		c.Versions = json.RawMessage("{}")
	}
	return nil
}

// again answers a creation whose run key exists.
func (e *Engine) again(ctx context.Context, q store.Querier, c Creation, r Run) (Run, bool, error) {
	input, err := e.clearInput(ctx, q, r)
	if err != nil {
		return Run{}, false, err
	}
	if r.Workflow == c.Workflow.Name && bytes.Equal(input, c.Input) {
		return r, false, nil
	}
	return Run{}, false, problem.New(problem.Conflict, "run_key_taken",
		"The run key %q belongs to run %s, which has another workflow or input. Use another key, or look at that run.", c.Key, r.ID).With("run", r.ID)
}

const sqlPutRun = `INSERT INTO run (tenant, id, key, thread, workflow, workflow_version, workflow_digest, tools, status, version, head,
	step, waiting_for, initiator, initiator_name, on_behalf_of, input, versions, trace_id, fence, epoch, crashes, signals, wake_at,
	created_at, updated_at)
	VALUES ($1,$2,$3,$4,$5,$6,$7,$8,'queued',1,$9,'','[]',$10,$11,$12,$13,$14,$15,0,$16,0,0,$17,$17,$17)`

// insert writes the run and its first checkpoint, which binds input and
// definitions into the chain.
func (e *Engine) insert(ctx context.Context, tx *store.Tx, c Creation) (Run, error) {
	now := tx.Now()
	run := id.NewRun(now)
	input, err := e.sealInput(ctx, tx, c, run)
	if err != nil {
		return Run{}, fmt.Errorf("seal input: %w", err)
	}
	used := map[string]string{}
	for name, digest := range c.Tools {
		if slices.Contains(c.Workflow.Tools, name) {
			used[name] = digest
		}
	}
	data, err := canon.Marshal(startData{Input: digestOf(input), Workflow: c.Workflow.Digest, Tools: used})
	if err != nil {
		return Run{}, fmt.Errorf("encode start: %w", err)
	}
	by := c.Actor
	head, err := appendEvent(ctx, tx, c.Tenant, run, 1, "", Creator{Person: &by}, workflow.Event{Kind: workflow.Started, At: now, Data: data})
	if err != nil {
		return Run{}, err
	}
	var key any
	if c.Key != "" {
		key = c.Key
	}
	trace := newTrace()
	err = tx.ExecOne(ctx, sqlPutRun, c.Tenant, string(run), key, c.Thread, c.Workflow.Name, c.Workflow.Version, c.Workflow.Digest,
		encode(used), head, c.Initiator, c.InitiatorName, c.OnBehalfOf, string(input), string(c.Versions), trace, e.o.Epoch, store.Micros(now))
	if err != nil {
		return Run{}, fmt.Errorf("insert run: %w", err)
	}
	err = e.record(ctx, tx, Record{Tenant: c.Tenant, Actor: c.Actor, Action: "run.start", Subject: string(run), Run: run, Digest: c.Workflow.Digest,
		Outcome: Queued, Payload: map[string]any{"workflow": c.Workflow.Name, "version": c.Workflow.Version, "input": digestOf(input), "key": c.Key, "on_behalf_of": c.OnBehalfOf}})
	if err != nil {
		return Run{}, err
	}
	at := fromMicros(store.Micros(now))
	return Run{ID: run, Tenant: c.Tenant, Key: c.Key, Thread: c.Thread, Workflow: c.Workflow.Name, WorkflowVersion: c.Workflow.Version,
		WorkflowDigest: c.Workflow.Digest, Status: Queued, Version: 1, WaitingFor: []Waiting{}, Initiator: c.Initiator, InitiatorName: c.InitiatorName,
		OnBehalfOf: c.OnBehalfOf, Input: input, Versions: c.Versions, TraceID: trace, WakeAt: at, CreatedAt: at, UpdatedAt: at,
		head: head, tools: used, epoch: e.o.Epoch}, nil
}

// newTrace makes a W3C trace id: 32 hex digits.
func newTrace() string { return randomHex(16) }

func randomHex(n int) string {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic("engine: the system has no randomness: " + err.Error())
	}
	return hex.EncodeToString(b)
}
