package engine

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// What a checkpoint says it was made by. A newer schema is not continued.
const (
	engineVersion = "countersign.engine/1"
	stateSchema   = 1
)

const sqlPutCheckpoint = `INSERT INTO checkpoint (tenant, run, version, path, pass, kind, event, output, output_digest, creator,
	engine, state_schema, digest, previous, created_at) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15)`

// seal is the digest of a checkpoint: over one line each for its type and its
// parts, none of which can hold a line break (long parts stand as digests).
func (c Checkpoint) seal(tenant string, run id.Run) string {
	creator := digestOf([]byte(encode(c.Creator)))
	return digestOf([]byte(strings.Join([]string{"countersign.checkpoint/1", digestOf([]byte(tenant)), string(run), strconv.FormatInt(c.Version, 10),
		c.eventDigest, c.outputDigest, creator, c.Engine, strconv.Itoa(c.Schema), strconv.FormatInt(store.Micros(c.CreatedAt), 10), c.Previous}, "\n")))
}

// entry is an event made ready to be recorded, so that the transaction only
// has to write. Its time is that of the transaction.
type entry struct {
	ev           workflow.Event
	body         json.RawMessage // canonical, without output and time: these have columns of their own
	bodyDigest   string
	outputDigest string // empty: no output
}

func newEntry(ev workflow.Event) (entry, error) {
	bare := ev
	bare.Output, bare.At = nil, time.Time{}
	body, err := canon.Marshal(bare)
	if err != nil {
		return entry{}, fmt.Errorf("encode event %s: %w", ev, err)
	}
	n := entry{ev: ev, body: body, bodyDigest: digestOf(body)}
	if len(ev.Output) > 0 {
		n.outputDigest = digestOf(ev.Output)
	}
	return n, nil
}

// putCheckpoint appends the entry to the run's chain and returns its digest.
func putCheckpoint(ctx context.Context, tx *store.Tx, tenant string, run id.Run, version int64, previous string, by Creator, n entry) (string, error) {
	c := Checkpoint{Version: version, Creator: by, Engine: engineVersion, Schema: stateSchema, Previous: previous, CreatedAt: tx.Now(),
		eventDigest: n.bodyDigest, outputDigest: n.outputDigest}
	digest := c.seal(tenant, run)
	var outputDigest any
	if n.outputDigest != "" {
		outputDigest = n.outputDigest
	}
	err := tx.ExecOne(ctx, sqlPutCheckpoint, tenant, string(run), version, n.ev.Path, n.ev.Pass, string(n.ev.Kind), string(n.body), text(n.ev.Output),
		outputDigest, encode(by), c.Engine, c.Schema, digest, previous, store.Micros(c.CreatedAt))
	if err != nil {
		return "", fmt.Errorf("append checkpoint %d: %w", version, err)
	}
	return digest, nil
}

// appendEvent makes the entry of one event and appends it.
func appendEvent(ctx context.Context, tx *store.Tx, tenant string, run id.Run, version int64, previous string, by Creator, ev workflow.Event) (string, error) {
	n, err := newEntry(ev)
	if err != nil {
		return "", err
	}
	return putCheckpoint(ctx, tx, tenant, run, version, previous, by, n)
}

const checkpointColumns = "version, path, event, output, output_digest, creator, engine, state_schema, digest, previous, created_at"

func scanCheckpoint(row scanner) (Checkpoint, error) {
	var c Checkpoint
	var output, outputDigest sql.NullString
	var event, creator string
	var created int64
	err := row.Scan(&c.Version, &c.Path, &event, &output, &outputDigest, &creator, &c.Engine, &c.Schema, &c.Digest, &c.Previous, &created)
	if err != nil {
		return Checkpoint{}, err
	}
	c.Event, c.Output, c.outputDigest, c.CreatedAt = json.RawMessage(event), raw(output), outputDigest.String, fromMicros(created)
	c.eventDigest = digestOf(c.Event)
	return c, json.Unmarshal([]byte(creator), &c.Creator)
}

// eachCheckpoint visits a run's checkpoints in order.
func eachCheckpoint(ctx context.Context, q store.Querier, tenant string, run id.Run, visit func(Checkpoint) error) error {
	rows, err := q.Query(ctx, "SELECT "+checkpointColumns+" FROM checkpoint WHERE tenant = $1 AND run = $2 ORDER BY version", tenant, string(run))
	if err != nil {
		return fmt.Errorf("read checkpoints: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		c, err := scanCheckpoint(rows)
		if err != nil {
			return &tampered{Version: c.Version, What: "cannot be read"}
		}
		if err := visit(c); err != nil {
			return err
		}
	}
	return rows.Err()
}

// tampered says which part of a run's record is not what was written.
type tampered struct {
	Version int64 // of the checkpoint; 0: the run's own row
	What    string
}

func (t *tampered) Error() string {
	if t.Version == 0 {
		return "The record of this run was altered: " + t.What + "."
	}
	return fmt.Sprintf("The record of this run was altered: checkpoint %d %s.", t.Version, t.What)
}

// chain is a run's verified record.
type chain struct {
	events  []workflow.Event     // without outputs: these stay in the database until an expression names one
	outputs map[stepKey]recorded // where each output is
	schema  int                  // the newest state schema in it
	started startData
	moves   []workflow.Move // to other versions of the workflow, in order
}

type stepKey struct {
	path string
	pass int
}

// recorded is where an output is kept and what it must be.
type recorded struct {
	version int64
	digest  string
}

// startData binds a run's own row into its chain, as the data of `started`.
type startData struct {
	Input    string            `json:"input"` // digest
	Workflow string            `json:"workflow"`
	Tools    map[string]string `json:"tools"`
}

// verify reads the whole record of a run, outputs included, and checks every
// byte of it against the chain. A *tampered error names what differs.
func verify(ctx context.Context, q store.Querier, r Run) (chain, error) {
	c := chain{outputs: map[stepKey]recorded{}}
	previous := ""
	err := eachCheckpoint(ctx, q, r.Tenant, r.ID, func(cp Checkpoint) error {
		if err := checkLink(r, cp, previous, int64(len(c.events))+1); err != nil {
			return err
		}
		previous = cp.Digest
		return c.add(cp)
	})
	if err != nil {
		return chain{}, err
	}
	return c, c.checkRun(r, previous)
}

// checkLink checks one checkpoint against the one before it.
func checkLink(r Run, cp Checkpoint, previous string, version int64) error {
	bad := func(what string) error { return &tampered{Version: version, What: what} }
	switch {
	case cp.Version != version:
		return bad("is missing")
	case cp.Output != nil && digestOf(cp.Output) != cp.outputDigest:
		return bad("holds another output than was recorded")
	case cp.Previous != previous:
		return bad("does not follow the one before it")
	case cp.seal(r.Tenant, r.ID) != cp.Digest:
		return bad("does not match its digest")
	}
	return nil
}

// add decodes a checked checkpoint. The fold needs the bytes of an output only
// where it looks into them: verdicts are small.
func (c *chain) add(cp Checkpoint) error {
	var ev workflow.Event
	if err := json.Unmarshal(cp.Event, &ev); err != nil {
		return &tampered{Version: cp.Version, What: "holds no event"}
	}
	ev.At = cp.CreatedAt
	if cp.Output != nil {
		ev.Output = cp.Output
		c.outputs[stepKey{ev.Path, ev.Pass}] = recorded{cp.Version, cp.outputDigest}
	}
	if ev.Kind == workflow.Started {
		if err := json.Unmarshal(ev.Data, &c.started); err != nil {
			return &tampered{Version: cp.Version, What: "holds no start"}
		}
	}
	if ev.Kind == workflow.Migrated {
		m, err := workflow.ReadMove(ev.Data)
		if err != nil {
			return &tampered{Version: cp.Version, What: "holds no move"}
		}
		c.move(m)
	}
	c.schema = max(c.schema, cp.Schema)
	c.events = append(c.events, ev)
	return nil
}

// move follows the run to another version: what is recorded under the old name
// of a step is found under the new one.
func (c *chain) move(m workflow.Move) {
	c.moves = append(c.moves, m)
	renamed := map[stepKey]recorded{}
	for k, at := range c.outputs {
		k.path = m.Name(k.path)
		renamed[k] = at
	}
	c.outputs = renamed
}

// now is the workflow and the tools of the run after its last move.
func (c *chain) now() (digest string, tools map[string]string) {
	if n := len(c.moves); n > 0 {
		return c.moves[n-1].To, c.moves[n-1].Tools
	}
	return c.started.Workflow, c.started.Tools
}

// unbroken reports whether every move begins at the version before it.
func (c *chain) unbroken() bool {
	at := c.started.Workflow
	for _, m := range c.moves {
		if m.From != at {
			return false
		}
		at = m.To
	}
	return true
}

// checkRun compares the run's row with its chain.
func (c *chain) checkRun(r Run, head string) error {
	digest, tools := c.now()
	switch {
	case int64(len(c.events)) != r.Version:
		return &tampered{What: fmt.Sprintf("it has %d checkpoints, not %d", len(c.events), r.Version)}
	case head != r.head:
		return &tampered{What: "its last checkpoint is not the one it ended with"}
	case c.started.Input != digestOf(r.Input):
		return &tampered{What: "its input is not the one it was started with"}
	case !c.unbroken():
		return &tampered{What: "it went from a version of its workflow that it did not have"}
	case digest != r.WorkflowDigest:
		return &tampered{What: "its workflow is not the one it was started with or went on to"}
	case !sameTools(tools, r.tools):
		return &tampered{What: "its tools are not the ones it was started with or went on to"}
	}
	return nil
}

func sameTools(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, digest := range a {
		if b[name] != digest {
			return false
		}
	}
	return true
}

// readOutput loads one recorded output and checks it again.
func readOutput(ctx context.Context, q store.Querier, r Run, at recorded) (json.RawMessage, error) {
	var output string
	err := q.QueryRow(ctx, "SELECT output FROM checkpoint WHERE tenant = $1 AND run = $2 AND version = $3", r.Tenant, string(r.ID), at.version).Scan(&output)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("read output: %w", err)
	}
	if err != nil || digestOf([]byte(output)) != at.digest {
		return nil, &tampered{Version: at.version, What: "holds another output than was recorded"}
	}
	return json.RawMessage(output), nil
}
