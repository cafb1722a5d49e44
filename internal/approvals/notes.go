package approvals

import (
	"context"
	"fmt"
	"strings"
	"time"

	"countersign/internal/id"
	"countersign/internal/store"
)

const (
	sqlSeen = `INSERT INTO first_view (tenant, request, revision, person, name, at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant, request, revision, person) DO NOTHING`
	sqlRemark = `INSERT INTO remark (tenant, request, nr, person, name, body, at)
		SELECT $1, $2, count(*) + 1, $3, $4, $5, $6 FROM remark WHERE tenant = $1 AND request = $2`
	sqlNotes = `SELECT 'view', person, name, revision, '', at, 0 FROM first_view WHERE tenant = $1 AND request = $2
		UNION ALL SELECT 'remark', person, name, 0, body, at, nr FROM remark WHERE tenant = $1 AND request = $2
		UNION ALL SELECT 'extension', person, name, revision, why, at, decide_by FROM extension WHERE tenant = $1 AND request = $2
		ORDER BY 6, 1, 2, 7 LIMIT $3`
)

// Seen notes the first time a person saw the whole of a revision; first is
// false where that was noted already, and nothing was written. The caller adds
// the audit entry when first. It must not keep anybody from reading: do it
// beside the page, not before it.
func (b *Book) Seen(ctx context.Context, tx *store.Tx, tenant string, request id.Approval, revision int, by Party) (first bool, err error) {
	n, err := tx.Exec(ctx, sqlSeen, tenant, string(request), revision, string(by.ID), by.Name, store.Micros(tx.Now()))
	if err != nil {
		return false, fmt.Errorf("note a view: %w", err)
	}
	return n == 1, nil
}

// HasSeen reports whether the person's first view is noted, without writing.
func (b *Book) HasSeen(ctx context.Context, q store.Querier, tenant string, request id.Approval, revision int, person id.Person) (bool, error) {
	var n int
	err := q.QueryRow(ctx, `SELECT count(*) FROM first_view WHERE tenant = $1 AND request = $2 AND revision = $3 AND person = $4`,
		tenant, string(request), revision, string(person)).Scan(&n)
	return n > 0, err
}

// Comment adds a remark to a request, in whatever state it is. Problems:
// not_found, invalid. The caller adds the audit entry.
func (b *Book) Comment(ctx context.Context, tx *store.Tx, tenant string, request id.Approval, person id.Person, name, text string) error {
	if _, _, _, err := load(ctx, tx, tenant, request); err != nil {
		return err
	}
	text = strings.TrimSpace(text)
	if text == "" || len(text) > CommentBytesMax {
		return invalid("The comment was not saved.").At("/text", "must hold 1 to %d bytes", CommentBytesMax)
	}
	if _, err := tx.Exec(ctx, sqlRemark, tenant, string(request), string(person), name, text, store.Micros(tx.Now())); err != nil {
		return fmt.Errorf("store remark: %w", err)
	}
	return nil
}

// The kinds of notes.
const (
	NoteView      = "view"
	NoteRemark    = "remark"
	NoteExtension = "extension"
)

// Note is a view, a remark or an extension, for the timeline.
type Note struct {
	Kind     string
	By       Party
	Revision int    // zero for a remark
	Text     string // of a remark; why, for an extension
	DecideBy time.Time
	At       time.Time
}

// notesMax bounds the notes of one request that are shown.
const notesMax = 1000

// Notes lists the views, remarks and extensions of a request, oldest first,
// at most 1000.
func (b *Book) Notes(ctx context.Context, q store.Querier, tenant string, request id.Approval) ([]Note, error) {
	rows, err := q.Query(ctx, sqlNotes, tenant, string(request), notesMax)
	if err != nil {
		return nil, fmt.Errorf("list notes: %w", err)
	}
	defer rows.Close()
	var all []Note
	for rows.Next() {
		var n Note
		var number int64
		if err := rows.Scan(&n.Kind, &n.By.ID, &n.By.Name, &n.Revision, &n.Text, nullTime{&n.At}, &number); err != nil {
			return nil, fmt.Errorf("list notes: %w", err)
		}
		if n.Kind == NoteExtension {
			n.DecideBy = store.FromMicros(number)
		}
		all = append(all, n)
	}
	return all, rows.Err()
}
