package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite"
)

// raw writes the rows of the same runs with the same statements into the same
// tables, with nothing around them: no planning, no digests, no leases, no
// audit log. It is the ceiling of this schema on this machine. With group set
// it commits whoever waits together, otherwise each alone.
type raw struct {
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	queue chan *rawOp
	ended chan struct{}
}

type rawOp struct {
	run  string
	step int // 0 creates the run
	err  chan error
}

// groupMax is as many as one commit takes.
const groupMax = 512

const (
	sqlRawRun = `INSERT INTO run (tenant, id, thread, workflow, workflow_version, workflow_digest, tools, status, version, head, step, waiting_for,
		initiator, initiator_name, on_behalf_of, input, versions, trace_id, lease_owner, lease_until, fence, epoch, crashes, signals, wake_at,
		created_at, updated_at) VALUES ('default', ?, '', 'bench', 1, ?, '{}', 'running', 1, ?, '', '[]', 'usr_bench', 'Bench', '', '{}', '{}', 't', 'raw', 1, 1, 0, 0, 0, 1, 1, 1)`
	sqlRawCheckpoint = `INSERT INTO checkpoint (tenant, run, version, path, pass, kind, event, output, output_digest, creator,
		engine, state_schema, digest, previous, created_at) VALUES ('default',?,?,?,1,?,?,?,?,?,'countersign.engine/1',1,?,?,1)`
	sqlRawStep = `INSERT INTO step (tenant, run, path, pass, kind, tool, status, attempts, tries, tried_at, retry_at, idempotency_key, input_digest,
		output_at, error, error_class, approval, action, started_at, updated_at) VALUES ('default',?,?,1,'call','bench.step','completed',1,0,0,0,?,?,?,NULL,'','','',1,1)
		ON CONFLICT (tenant, run, path, pass) DO UPDATE SET status = excluded.status, attempts = excluded.attempts, output_at = excluded.output_at, updated_at = excluded.updated_at`
	sqlRawUpdate = `UPDATE run SET version = version + 1, head = ?, status = ?, step = ?, waiting_for = '[]', output = NULL, error = NULL, crashes = 0,
		updated_at = 1, finished_at = NULL WHERE tenant = 'default' AND id = ? AND lease_owner = 'raw' AND fence = 1 AND version = ?`
)

// What stands where the engine has digests, keys and events, in their length.
var (
	rawDigest  = "sha256:" + strings.Repeat("0", 64)
	rawKey     = "cs_" + strings.Repeat("0", 48)
	rawEvent   = `{"attempt":1,"kind":"step_completed","pass":1,"path":"s1"}`
	rawCreator = `{"driver":"bench","fence":1}`
)

// openRaw makes the engine's tables and opens them without it.
func openRaw(ctx context.Context, dir string, lib *library) (*raw, error) {
	c, err := openConsole(ctx, dir, lib)
	if err != nil {
		return nil, err
	}
	if err := c.close(ctx); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "bench.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)")
	if err != nil {
		return nil, err
	}
	r := &raw{db: db, stmts: map[string]*sql.Stmt{}, queue: make(chan *rawOp, groupMax), ended: make(chan struct{})}
	if r.conn, err = db.Conn(ctx); err != nil {
		return nil, err
	}
	var mode int
	if err := r.conn.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&mode); err != nil || mode != 2 {
		return nil, fmt.Errorf("synchronous is %d (%v), want 2 (FULL)", mode, err)
	}
	for _, text := range []string{"BEGIN IMMEDIATE", "COMMIT", sqlRawRun, sqlRawCheckpoint, sqlRawStep, sqlRawUpdate} {
		if r.stmts[text], err = r.conn.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
	}
	go r.write(ctx)
	return r, nil
}

// write is the one writer.
func (r *raw) write(ctx context.Context) {
	defer close(r.ended)
	for first := range r.queue {
		group := []*rawOp{first}
		for len(group) < groupMax {
			select {
			case o, ok := <-r.queue:
				if ok {
					group = append(group, o)
					continue
				}
			default:
			}
			break
		}
		err := r.commit(ctx, group)
		for _, o := range group {
			o.err <- err
		}
	}
}

func (r *raw) commit(ctx context.Context, group []*rawOp) error {
	if _, err := r.stmts["BEGIN IMMEDIATE"].ExecContext(ctx); err != nil {
		return err
	}
	for _, o := range group {
		if err := r.apply(ctx, o); err != nil {
			return err
		}
	}
	_, err := r.stmts["COMMIT"].ExecContext(ctx)
	return err
}

func (r *raw) apply(ctx context.Context, o *rawOp) error {
	if o.step == 0 {
		if _, err := r.stmts[sqlRawRun].ExecContext(ctx, o.run, rawDigest, rawDigest); err != nil {
			return err
		}
		_, err := r.stmts[sqlRawCheckpoint].ExecContext(ctx, o.run, 1, "", "started", rawEvent, nil, nil, rawCreator, rawDigest, "")
		return err
	}
	path, status := fmt.Sprint("s", o.step), "running"
	if o.step == stepsPerRun {
		status = "completed"
	}
	if _, err := r.stmts[sqlRawCheckpoint].ExecContext(ctx, o.run, o.step+1, path, "step_completed", rawEvent, string(payload(o.run, o.step)), rawDigest, rawCreator, rawDigest, rawDigest); err != nil {
		return err
	}
	if _, err := r.stmts[sqlRawStep].ExecContext(ctx, o.run, path, rawKey, rawDigest, o.step+1); err != nil {
		return err
	}
	res, err := r.stmts[sqlRawUpdate].ExecContext(ctx, rawDigest, status, path, o.run, o.step)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("run %s was not at version %d (%v)", o.run, o.step, err)
	}
	return nil
}

// run writes one run.
func (r *raw) run(n int) error {
	for step := range stepsPerRun + 1 {
		o := &rawOp{run: fmt.Sprintf("run_%026d", n), step: step, err: make(chan error, 1)}
		r.queue <- o
		if err := <-o.err; err != nil {
			return err
		}
	}
	return nil
}

func (r *raw) close() error {
	close(r.queue)
	<-r.ended
	for _, s := range r.stmts {
		_ = s.Close()
	}
	_ = r.conn.Close()
	return r.db.Close()
}
