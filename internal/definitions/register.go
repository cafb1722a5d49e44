package definitions

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"slices"

	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

//go:embed migrations
var migrations embed.FS

// Migrations is this package's line of the database schema.
var Migrations = store.Line{Name: "definitions", FS: migrations, Dir: "migrations", Guarded: []string{"definition", "definition_in_force"}}

// Change is one difference that registering a bundle makes: a version that is
// new, or that came into force.
type Change struct {
	Kind    Kind
	Name    string
	Version int
	Digest  string
	What    string // "added", "in force"
}

// Register stores what is new of the bundle and puts the highest version of
// each name in force. Registering the same bundle again changes nothing. A
// version that is stored with another content is refused with a problem of
// code version_reused that names both digests. The caller audits the changes
// in the same transaction.
func (b *Bundle) Register(ctx context.Context, tx *store.Tx, tenant string) ([]Change, error) {
	var changes []Change
	for _, r := range b.all() {
		added, err := b.add(ctx, tx, tenant, r)
		if err != nil {
			return nil, err
		}
		if added {
			changes = append(changes, Change{r.kind, r.name, r.version, r.digest, "added"})
		}
	}
	for _, r := range highest(b.all()) {
		put, err := putInForce(ctx, tx, tenant, r)
		if err != nil {
			return nil, err
		}
		if put {
			changes = append(changes, Change{r.kind, r.name, r.version, r.digest, "in force"})
		}
	}
	return changes, nil
}

const sqlDigestOf = `SELECT digest FROM definition WHERE tenant = $1 AND kind = $2 AND name = $3 AND version = $4`

const sqlAdd = `INSERT INTO definition (tenant, kind, name, version, digest, compiled, source, file, created_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

func (b *Bundle) add(ctx context.Context, tx *store.Tx, tenant string, r row) (bool, error) {
	var stored string
	err := tx.QueryRow(ctx, sqlDigestOf, tenant, string(r.kind), r.name, r.version).Scan(&stored)
	switch {
	case err == nil && stored == r.digest:
		return false, nil
	case err == nil:
		return false, problem.New(problem.Conflict, "version_reused",
			"The %s %s version %d is stored as %s, but the file now reads %s. A version never changes: give the new content a higher version number.",
			r.kind, r.name, r.version, stored, r.digest)
	case !errors.Is(err, sql.ErrNoRows):
		return false, fmt.Errorf("read definition: %w", err)
	}
	src := b.sources[r.digest]
	_, err = tx.Exec(ctx, sqlAdd, tenant, string(r.kind), r.name, r.version, r.digest, string(r.compiled), src.text, src.file, store.Micros(tx.Now()))
	if store.IsUnique(err) {
		return false, problem.New(problem.Conflict, "version_reused",
			"The %s %s version %d has the same content as another stored version; keep that version's number.", r.kind, r.name, r.version)
	}
	return err == nil, err
}

const sqlInForce = `SELECT version FROM definition_in_force WHERE tenant = $1 AND kind = $2 AND name = $3`

const sqlPutInForce = `INSERT INTO definition_in_force (tenant, kind, name, version, since) VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (tenant, kind, name) DO UPDATE SET version = excluded.version, since = excluded.since`

func putInForce(ctx context.Context, tx *store.Tx, tenant string, r row) (bool, error) {
	var version int
	err := tx.QueryRow(ctx, sqlInForce, tenant, string(r.kind), r.name).Scan(&version)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("read definition in force: %w", err)
	}
	if err == nil && version == r.version {
		return false, nil
	}
	_, err = tx.Exec(ctx, sqlPutInForce, tenant, string(r.kind), r.name, r.version, store.Micros(tx.Now()))
	return err == nil, err
}

// highest returns the row of the greatest version for each kind and name, in
// that order.
func highest(rows []row) []row {
	best := map[string]row{}
	for _, r := range rows {
		key := string(r.kind) + " " + r.name
		if have, ok := best[key]; !ok || have.version < r.version {
			best[key] = r
		}
	}
	out := make([]row, 0, len(best))
	for _, r := range best {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b row) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	return out
}

// Keep stores a workflow that the program made itself, without putting it in
// force under its name for anybody to start. Keeping it again changes nothing.
func Keep(ctx context.Context, tx *store.Tx, tenant string, w *workflow.Workflow) error {
	b := &Bundle{sources: map[string]source{w.Digest: {file: "made by the console"}}}
	var there int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM definition WHERE tenant = $1 AND kind = $2 AND digest = $3`, tenant, string(KindWorkflow), w.Digest).Scan(&there)
	if err != nil || there > 0 {
		return err
	}
	_, err = b.add(ctx, tx, tenant, row{KindWorkflow, w.Name, w.Version, w.Digest, w.Compiled})
	return err
}
