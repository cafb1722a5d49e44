package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/internal/id"
	"countersign/internal/store"
)

// RevisionInfo is one revision of a request, for its history.
type RevisionInfo struct {
	Revision    int
	Digest      string
	ParamsHash  string
	Effect      Effect // of the policy's verdict on it
	Status      Status // Superseded, or the request's
	Supersedes  string
	Why         string
	Comment     string
	Editor      Party // who changed content; empty: nobody did
	CausedBy    Party
	Subject     json.RawMessage
	RulingEntry id.Entry
	CreatedAt   time.Time
}

const revisionColumns = `v.revision, v.digest, v.params_hash, v.effect, v.supersedes, v.why, v.comment, v.editor, v.editor_name,
	v.caused_by, v.caused_by_name, v.subject, coalesce(e.entry, ''), v.created_at, r.status, r.revision
	FROM revision v JOIN request r ON r.tenant = v.tenant AND r.id = v.request
	LEFT JOIN ruling_entry e ON e.tenant = v.tenant AND e.request = v.request AND e.revision = v.revision`

const (
	sqlRevisions = `SELECT ` + revisionColumns + ` WHERE v.tenant = $1 AND v.request = $2 ORDER BY v.revision DESC LIMIT $3`
	sqlRevision  = `SELECT ` + revisionColumns + ` WHERE v.tenant = $1 AND v.request = $2 AND v.revision = $3`
)

// revisionsMax bounds the revisions of one request that are listed.
const revisionsMax = 100

// Revisions lists the revisions of a request, newest first, at most 100.
func (b *Book) Revisions(ctx context.Context, q store.Querier, tenant string, request id.Approval) ([]RevisionInfo, error) {
	rows, err := q.Query(ctx, sqlRevisions, tenant, string(request), revisionsMax)
	if err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	defer rows.Close()
	var all []RevisionInfo
	for rows.Next() {
		v, err := scanRevision(rows)
		if err != nil {
			return nil, fmt.Errorf("list revisions: %w", err)
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// Revision returns one revision. Problem: not_found.
func (b *Book) Revision(ctx context.Context, q store.Querier, tenant string, request id.Approval, revision int) (RevisionInfo, error) {
	v, err := scanRevision(q.QueryRow(ctx, sqlRevision, tenant, string(request), revision))
	if errors.Is(err, store.ErrNotFound) {
		return v, ErrNotFound
	}
	return v, err
}

func scanRevision(row scanner) (RevisionInfo, error) {
	var v RevisionInfo
	var current int
	err := row.Scan(&v.Revision, &v.Digest, &v.ParamsHash, &v.Effect, &v.Supersedes, &v.Why, &v.Comment, &v.Editor.ID, &v.Editor.Name,
		&v.CausedBy.ID, &v.CausedBy.Name, nullJSON{&v.Subject}, &v.RulingEntry, nullTime{&v.CreatedAt}, &v.Status, &current)
	if v.Revision != current {
		v.Status = Superseded
	}
	return v, err
}

// Decisions lists every decision on any revision of a request, retracted ones
// included, oldest first.
func (b *Book) Decisions(ctx context.Context, q store.Querier, tenant string, request id.Approval) ([]DecisionRecord, error) {
	return decisions(ctx, q, tenant, request, 0)
}

// Eligibility says who may approve the current revision as people are now,
// whether person may, and whether it can be completed. Problem: not_found.
func (b *Book) Eligibility(ctx context.Context, q store.Querier, tenant string, request id.Approval, person id.Person) (Eligibility, error) {
	i, _, _, err := load(ctx, q, tenant, request)
	if err != nil {
		return Eligibility{}, err
	}
	people, err := b.candidates(ctx, q, tenant, i.law.Groups)
	if err != nil {
		return Eligibility{}, err
	}
	e := i.law.eligibility(people)
	who, err := b.person(ctx, q, tenant, person)
	if err != nil {
		return Eligibility{}, err
	}
	s := i.law.standing(who, VerdictApprove)
	if e.May = s.May; !s.May {
		e.Why = who.Name + " " + s.Why + "."
	}
	return e, nil
}
