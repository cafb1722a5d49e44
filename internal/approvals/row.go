package approvals

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/store"
)

const itemColumns = `r.tenant, r.id, r.kind, r.status, r.revision, r.digest, r.votes, r.run, r.path, r.pass, r.action, r.workflow,
	r.tool, r.tool_version, r.tool_digest, r.risk, r.target, r.title, r.summary, r.params, r.params_hash, r.request_digest,
	r.idempotency_key, r.initiator, r.initiator_name, r.on_behalf_of, r.law, r.policy, r.policy_version, r.policy_digest, r.rule,
	r.dead_end, r.run_version, r.decide_by, r.execute_within, r.execute_by, r.started_at, r.outcome, r.outcome_at,
	r.closed_by, r.closed_by_name, r.closed_why, r.closed_at, r.created_at, r.updated_at`

// nullTime scans a nullable column of microseconds.
type nullTime struct{ t *time.Time }

func (n nullTime) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*n.t = time.Time{}
	case int64:
		*n.t = store.FromMicros(v)
	default:
		return fmt.Errorf("a time is stored as %T", v)
	}
	return nil
}

// nullJSON scans a nullable column of JSON.
type nullJSON struct{ raw *json.RawMessage }

func (n nullJSON) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*n.raw = nil
	case string:
		*n.raw = json.RawMessage(v)
	case []byte:
		*n.raw = append(json.RawMessage(nil), v...)
	default:
		return fmt.Errorf("json is stored as %T", v)
	}
	return nil
}

type scanner interface{ Scan(dest ...any) error }

// scanItem reads itemColumns, then more.
func scanItem(row scanner, more ...any) (Item, error) {
	var i Item
	var within int64
	var lawText json.RawMessage
	dest := []any{&i.Tenant, &i.ID, &i.Kind, &i.Status, &i.Revision, &i.Digest, &i.votes, &i.Run, &i.Path, &i.Pass, &i.Action, &i.Workflow,
		&i.Tool, &i.ToolVersion, &i.ToolDigest, &i.Risk, &i.Target, &i.Title, &i.Summary, nullJSON{&i.params}, &i.ParamsHash, &i.requestDigest,
		&i.Key, &i.Initiator, &i.InitiatorName, &i.OnBehalfOf, nullJSON{&lawText}, &i.Policy, &i.PolicyVersion, &i.PolicyDigest, &i.Rule,
		&i.DeadEnd, &i.RunVersion, nullTime{&i.DecideBy}, &within, nullTime{&i.ExecuteBy}, nullTime{&i.StartedAt}, &i.Outcome, nullTime{&i.OutcomeAt},
		&i.ClosedBy, &i.ClosedByName, &i.ClosedWhy, nullTime{&i.ClosedAt}, nullTime{&i.CreatedAt}, nullTime{&i.UpdatedAt}}
	if err := row.Scan(append(dest, more...)...); err != nil {
		return Item{}, err
	}
	i.ExecuteWithin = micros(within)
	if err := json.Unmarshal(lawText, &i.law); err != nil {
		i.law = law{} // nobody may decide; Check says what is wrong
	}
	i.Groups = progress(i.law.Groups, nil)
	return i, nil
}

const sqlItem = `SELECT ` + itemColumns + `, v.subject, v.digest FROM request r
	LEFT JOIN revision v ON v.tenant = r.tenant AND v.request = r.id AND v.revision = r.revision
	WHERE r.tenant = $1 AND r.id = $2`

// load reads the row of a request and the bytes of its current revision.
// Problem: not_found.
func load(ctx context.Context, q store.Querier, tenant string, request id.Approval) (Item, json.RawMessage, string, error) {
	var subject json.RawMessage
	var digest sql.NullString
	i, err := scanItem(q.QueryRow(ctx, sqlItem, tenant, string(request)), nullJSON{&subject}, &digest)
	if errors.Is(err, store.ErrNotFound) {
		return Item{}, nil, "", ErrNotFound
	}
	if err != nil {
		return Item{}, nil, "", fmt.Errorf("read request: %w", err)
	}
	return i, subject, digest.String, nil
}

// Get returns a request with its current revision and the votes on it.
// Problems: not_found, unreadable_record.
func (b *Book) Get(ctx context.Context, q store.Querier, tenant string, request id.Approval) (Request, error) {
	i, raw, _, err := load(ctx, q, tenant, request)
	if err != nil {
		return Request{}, err
	}
	r := Request{Item: i}
	s, err := parseSubject(raw)
	if err == nil {
		err = r.fill(s, raw)
	}
	if err != nil {
		return Request{}, ErrUnreadable.Because(fmt.Errorf("request %s: %w", request, err))
	}
	return r, r.loadVotes(ctx, q)
}

// loadVotes reads the standing decisions on the current revision.
func (r *Request) loadVotes(ctx context.Context, q store.Querier) error {
	all, err := decisions(ctx, q, r.Tenant, r.ID, r.Revision)
	if err != nil {
		return err
	}
	r.Decisions = standingOnly(all)
	r.Groups = progress(r.law.Groups, r.Decisions)
	return nil
}

func standingOnly(all []DecisionRecord) []DecisionRecord {
	var kept []DecisionRecord
	for _, d := range all {
		if d.RetractedAt.IsZero() {
			kept = append(kept, d)
		}
	}
	return kept
}

const decisionColumns = `d.id, d.request, d.revision, d.digest, d.person, d.person_name, d.turn, d.verdict, d.groups, d.authority,
	d.rule, d.policy, d.policy_version, d.auth, d.channel, d.comment, d.decided_at, e.entry, x.at, coalesce(x.why, '')`

const decisionJoins = ` FROM decision d
	LEFT JOIN decision_entry e ON e.tenant = d.tenant AND e.decision = d.id
	LEFT JOIN retraction x ON x.tenant = d.tenant AND x.decision = d.id`

const sqlDecisions = `SELECT ` + decisionColumns + decisionJoins + `
	WHERE d.tenant = $1 AND d.request = $2 AND ($3 = 0 OR d.revision = $3)
	ORDER BY d.revision, d.decided_at, d.id`

// decisions reads all decisions on a revision, or on all for revision 0.
func decisions(ctx context.Context, q store.Querier, tenant string, request id.Approval, revision int) ([]DecisionRecord, error) {
	rows, err := q.Query(ctx, sqlDecisions, tenant, string(request), revision)
	if err != nil {
		return nil, fmt.Errorf("read decisions: %w", err)
	}
	defer rows.Close()
	var all []DecisionRecord
	for rows.Next() {
		d, err := scanDecision(rows)
		if err != nil {
			return nil, fmt.Errorf("read decisions: %w", err)
		}
		all = append(all, d)
	}
	return all, rows.Err()
}

func scanDecision(row scanner, more ...any) (DecisionRecord, error) {
	var d DecisionRecord
	var groups json.RawMessage
	var entry sql.NullString
	dest := []any{&d.ID, &d.Request, &d.Revision, &d.Digest, &d.Person, &d.PersonName, &d.turn, &d.Verdict, nullJSON{&groups}, &d.Authority,
		&d.Rule, &d.Policy, &d.PolicyVersion, &d.Auth, &d.Channel, &d.Comment, nullTime{&d.DecidedAt}, &entry, nullTime{&d.RetractedAt}, &d.RetractedWhy}
	if err := row.Scan(append(dest, more...)...); err != nil {
		return DecisionRecord{}, err
	}
	d.AuditEntry = entry.String
	if err := json.Unmarshal(groups, &d.Groups); err != nil {
		d.Groups = nil // it then fills no place
	}
	return d, nil
}

// lawText is the stored form of a law.
func lawText(l law) (json.RawMessage, error) { return canon.Marshal(l) }
