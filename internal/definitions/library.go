package definitions

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/canon"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// Library loads stored definitions by digest or by name. What it returns is
// immutable and shared; what is in force is read from the database each time,
// so that another process's change is seen.
type Library struct {
	mu    sync.Mutex // protects cache
	cache map[string]any
}

// cacheMax bounds the compiled definitions kept in memory.
const cacheMax = 256

// NewLibrary returns an empty library.
func NewLibrary() *Library { return &Library{cache: map[string]any{}} }

const sqlByDigest = `SELECT compiled FROM definition WHERE tenant = $1 AND kind = $2 AND digest = $3`

// load returns the definition with the digest, compiled again from the stored
// bytes, whose digest is checked first.
func load[T any](ctx context.Context, l *Library, q store.Querier, tenant string, kind Kind, digest string, compile func(json.RawMessage) (T, error)) (T, error) {
	var none T
	key := tenant + " " + string(kind) + " " + digest
	l.mu.Lock()
	have, ok := l.cache[key]
	l.mu.Unlock()
	if ok {
		return have.(T), nil
	}
	var compiled []byte
	err := q.QueryRow(ctx, sqlByDigest, tenant, string(kind), digest).Scan(&compiled)
	if errors.Is(err, sql.ErrNoRows) {
		return none, problem.New(problem.NotFound, "definition_gone", "The %s with the digest %s is not stored here.", kind, digest)
	}
	if err != nil {
		return none, fmt.Errorf("read %s %s: %w", kind, digest, err)
	}
	if got := canon.Digest(compiled); got != digest {
		return none, problem.New(problem.Conflict, "definition_tampered", "The stored %s says it is %s, but its content is %s. Restore it from a backup.", kind, digest, got)
	}
	made, err := compile(compiled)
	if err != nil {
		return none, problem.New(problem.Conflict, "definition_unusable", "This program cannot use the stored %s %s: %v", kind, digest, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.cache) >= cacheMax {
		clear(l.cache)
	}
	l.cache[key] = made
	return made, nil
}

// Workflow returns the workflow version with the digest. Problems:
// definition_gone, definition_tampered, definition_unusable.
func (l *Library) Workflow(ctx context.Context, q store.Querier, tenant, digest string) (*workflow.Workflow, error) {
	return load(ctx, l, q, tenant, KindWorkflow, digest, workflow.Load)
}

// Tool returns the tool version with the digest. Problems as of Workflow.
func (l *Library) Tool(ctx context.Context, q store.Querier, tenant, digest string) (*tools.Tool, error) {
	return load(ctx, l, q, tenant, KindTool, digest, tools.Load)
}

// Policy returns the policy version with the digest. Problems as of Workflow.
func (l *Library) Policy(ctx context.Context, q store.Querier, tenant, digest string) (*approvals.Policy, error) {
	return load(ctx, l, q, tenant, KindPolicy, digest, approvals.LoadPolicy)
}

const sqlDigestInForce = `SELECT d.digest FROM definition_in_force f JOIN definition d
	ON d.tenant = f.tenant AND d.kind = f.kind AND d.name = f.name AND d.version = f.version
	WHERE f.tenant = $1 AND f.kind = $2 AND f.name = $3`

func (l *Library) digestInForce(ctx context.Context, q store.Querier, tenant string, kind Kind, name string) (string, error) {
	var digest string
	err := q.QueryRow(ctx, sqlDigestInForce, tenant, string(kind), name).Scan(&digest)
	if errors.Is(err, sql.ErrNoRows) {
		return "", problem.New(problem.NotFound, "unknown_"+string(kind), "There is no %s named %q here.", kind, name)
	}
	return digest, err
}

// WorkflowInForce returns the version of the workflow that new runs take.
// Problem: unknown_workflow.
func (l *Library) WorkflowInForce(ctx context.Context, q store.Querier, tenant, name string) (*workflow.Workflow, error) {
	digest, err := l.digestInForce(ctx, q, tenant, KindWorkflow, name)
	if err != nil {
		return nil, err
	}
	return l.Workflow(ctx, q, tenant, digest)
}

// ToolInForce returns the version of the tool that new runs and proposals
// take. Problem: unknown_tool.
func (l *Library) ToolInForce(ctx context.Context, q store.Querier, tenant, name string) (*tools.Tool, error) {
	digest, err := l.digestInForce(ctx, q, tenant, KindTool, name)
	if err != nil {
		return nil, err
	}
	return l.Tool(ctx, q, tenant, digest)
}

// policyName is the name of the policy that is asked; there is one.
const policyName = "default"

// PolicyInForce returns the policy of the tenant: the one named default, or
// nil when none is stored, which asks the approver role about everything.
func (l *Library) PolicyInForce(ctx context.Context, q store.Querier, tenant string) (*approvals.Policy, error) {
	digest, err := l.digestInForce(ctx, q, tenant, KindPolicy, policyName)
	if problem.HasCode(err, "unknown_policy") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return l.Policy(ctx, q, tenant, digest)
}

// Summary is one stored version as lists show it.
type Summary struct {
	Kind    Kind
	Name    string
	Version int
	Digest  string
	File    string
	Source  string
	InForce bool
	Created time.Time
}

const sqlList = `SELECT d.kind, d.name, d.version, d.digest, d.file, d.source, d.created_at,
		CASE WHEN f.version IS NULL THEN 0 ELSE 1 END
	FROM definition d LEFT JOIN definition_in_force f
		ON f.tenant = d.tenant AND f.kind = d.kind AND f.name = d.name AND f.version = d.version
	WHERE d.tenant = $1 AND ($2 = '' OR d.kind = $2) AND ($3 = '' OR d.name = $3)
	ORDER BY d.kind, d.name, d.version DESC LIMIT 500`

// List returns the stored versions of a kind and name, each empty for all:
// by kind, name, newest version first, at most 500.
func (l *Library) List(ctx context.Context, q store.Querier, tenant string, kind Kind, name string) ([]Summary, error) {
	rows, err := q.Query(ctx, sqlList, tenant, string(kind), name)
	if err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	defer rows.Close()
	var out []Summary
	for rows.Next() {
		var s Summary
		var created int64
		if err := rows.Scan(&s.Kind, &s.Name, &s.Version, &s.Digest, &s.File, &s.Source, &created, &s.InForce); err != nil {
			return nil, fmt.Errorf("list definitions: %w", err)
		}
		s.Created = store.FromMicros(created)
		out = append(out, s)
	}
	return out, rows.Err()
}

// ToolsInForce returns the tools by name that new runs may call.
func (l *Library) ToolsInForce(ctx context.Context, q store.Querier, tenant string) (Catalog, error) {
	digests, err := toolsInForce(ctx, q, tenant)
	if err != nil {
		return nil, fmt.Errorf("list the tools in force: %w", err)
	}
	c := Catalog{}
	for _, digest := range digests {
		t, err := l.Tool(ctx, q, tenant, digest)
		if err != nil {
			return nil, err
		}
		c[t.Name] = t
	}
	return c, nil
}

const sqlToolsInForce = `SELECT d.digest FROM definition_in_force f JOIN definition d
		ON d.tenant = f.tenant AND d.kind = f.kind AND d.name = f.name AND d.version = f.version
	WHERE f.tenant = $1 AND f.kind = $2`

func toolsInForce(ctx context.Context, q store.Querier, tenant string) (digests []string, err error) {
	rows, err := q.Query(ctx, sqlToolsInForce, tenant, string(KindTool))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var digest string
		if err := rows.Scan(&digest); err != nil {
			return nil, err
		}
		digests = append(digests, digest)
	}
	return digests, rows.Err()
}
