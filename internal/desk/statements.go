package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/audit"
	"countersign/internal/canon"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// twoPersons is the risk from which on an unknown effect moves only when two
// people say the same of it (DESIGN section 6, reconcile).
const twoPersons = "critical"

// Statement is what one person said of an unknown effect.
type Statement struct {
	Person   Party           `json:"person"`
	Outcome  string          `json:"outcome"`
	Evidence string          `json:"evidence"`
	Receipt  json.RawMessage `json:"receipt,omitempty"`
	At       time.Time       `json:"at"`

	turn  int
	entry id.Entry // of the audit log
}

// EffectView is a ledger row with who has to say what happened, and who did.
type EffectView struct {
	engine.Effect
	Needed     int         `json:"statements_needed"` // how many people must say the same
	Statements []Statement `json:"statements"`        // that stand, where two are needed
	Said       string      `json:"said,omitempty"`    // how far that is, and who is missing, in words
}

const sqlStatements = `SELECT turn, person, name, outcome, evidence, receipt, entry, at FROM statement
	WHERE tenant = $1 AND effect = $2 AND attempt = $3 ORDER BY nr`

// statements are those that stand on the last try of the effect: the newest
// of turn 1, and the one of turn 2 that agreed with it. What the audit log does
// not prove nobody said.
func (d *Desk) statements(ctx context.Context, q store.Querier, e engine.Effect) ([]Statement, error) {
	stored, err := storedStatements(ctx, q, e)
	if err != nil {
		return nil, err
	}
	out := []Statement{}
	for _, s := range stored {
		if why := d.unsaid(ctx, q, e, s); why != "" {
			d.logger.Error("a stored statement does not hold", "effect", e.ID, "person", s.Person.ID, "why", why)
			continue
		}
		if s.turn == 1 {
			out = out[:0]
		}
		out = append(out, s)
	}
	return out, nil
}

func storedStatements(ctx context.Context, q store.Querier, e engine.Effect) (out []Statement, err error) {
	rows, err := q.Query(ctx, sqlStatements, e.Tenant, string(e.ID), e.Attempts)
	if err != nil {
		return nil, fmt.Errorf("read statements: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var s Statement
		var receipt *string
		var at int64
		if err := rows.Scan(&s.turn, &s.Person.ID, &s.Person.Name, &s.Outcome, &s.Evidence, &receipt, &s.entry, &at); err != nil {
			return nil, fmt.Errorf("read statements: %w", err)
		}
		if s.At = store.FromMicros(at); receipt != nil {
			s.Receipt = json.RawMessage(*receipt)
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// unsaid returns why the audit log does not prove that the person said this of
// the effect, or "".
func (d *Desk) unsaid(ctx context.Context, q store.Querier, e engine.Effect, s Statement) string {
	logged, err := d.log.Proven(ctx, q, e.Tenant, s.entry)
	if err != nil {
		return err.Error()
	}
	about := s.logged(e)
	if logged.Action != about.Action || logged.Subject != about.Subject || logged.Outcome != about.Outcome || logged.Actor.ID != s.Person.ID ||
		!logged.Time.Equal(s.At) || !maps.Equal(logged.Authority, about.Authority) {
		return "its audit entry is about something else"
	}
	return ""
}

// logged is what the audit entry of a statement says.
func (s Statement) logged(e engine.Effect) audit.Entry {
	about := map[string]string{"attempt": strconv.Itoa(e.Attempts)}
	if len(s.Receipt) > 0 {
		about["receipt_digest"] = canon.Digest(s.Receipt)
	}
	return audit.Entry{Action: "effect.stated", Subject: string(e.ID), Run: e.Run, Digest: e.Digest,
		Outcome: fmt.Sprintf("%s, %d of 2", s.Outcome, s.turn), Authority: about, Payload: payload(s)}
}

const sqlState = `INSERT INTO statement (tenant, effect, nr, attempt, turn, person, name, outcome, evidence, receipt, entry, at)
	SELECT $1, $2, 1 + coalesce(max(nr), 0), $3, $4, $5, $6, $7, $8, $9, $10, $11 FROM statement WHERE tenant = $1 AND effect = $2`

// state keeps one person's statement with its audit entry.
func (d *Desk) state(ctx context.Context, tx *store.Tx, p identity.Principal, e engine.Effect, s Statement) error {
	entry, err := d.log.Append(ctx, tx, d.entry(p, s.logged(e)))
	if err != nil {
		return err
	}
	var receipt any
	if len(s.Receipt) > 0 {
		receipt = string(s.Receipt)
	}
	_, err = tx.Exec(ctx, sqlState, e.Tenant, string(e.ID), e.Attempts, s.turn, string(p.Person), p.Name, s.Outcome, s.Evidence, receipt, string(entry), store.Micros(tx.Now()))
	if err != nil {
		return fmt.Errorf("keep a statement: %w", err)
	}
	d.announce(tx, TopicEffects, string(e.ID))
	d.announce(tx, TopicRuns, string(e.Run))
	return nil
}

// agreed is asked before an effect moves: the first person's statement is kept
// and nothing moves; a second person's moves it, if it says the same. Somebody
// who may no longer say it has not said it.
func (d *Desk) agreed(p identity.Principal, s Statement) func(context.Context, *store.Tx, engine.Effect) (bool, error) {
	return func(ctx context.Context, tx *store.Tx, e engine.Effect) (bool, error) {
		first, err := d.firstSaid(ctx, tx, e)
		if err != nil {
			return false, err
		}
		s := s
		s.At = tx.Now()
		switch {
		case first == nil || first.Person.ID == string(p.Person):
			s.turn = 1
			return false, d.state(ctx, tx, p, e, s)
		case first.Outcome != s.Outcome || string(first.Receipt) != string(s.Receipt):
			return false, differs(*first, s)
		}
		s.turn = 2
		return true, d.state(ctx, tx, p, e, s)
	}
}

// firstSaid is the statement that waits for a second person, if one does.
func (d *Desk) firstSaid(ctx context.Context, q store.Querier, e engine.Effect) (*Statement, error) {
	said, err := d.statements(ctx, q, e)
	if err != nil || len(said) != 1 {
		return nil, err
	}
	able, err := d.operators(ctx, q)
	if err != nil || !slices.ContainsFunc(able, func(o approvals.Person) bool { return string(o.ID) == said[0].Person.ID }) {
		return nil, err
	}
	return &said[0], nil
}

// saidWords says in a clause what each outcome is.
var saidWords = map[string]string{
	engine.Happened: "that it happened", engine.DidNotSendAgain: "that it did not happen and is to be sent again",
	engine.DidNotStop: "that it did not happen and is to be left", engine.GiveUp: "that nobody can tell",
}

// differs refuses a second statement that is not the first one.
func differs(first, second Statement) error {
	p := problem.New(problem.Conflict, "statement_differs", "%s said at %s %s. Two people must say the same, and you say another thing; nothing was changed. Talk to %s, who can change what was said.",
		first.Person.Name, first.At.Format(instantForm), saidWords[first.Outcome], first.Person.Name)
	switch {
	case first.Outcome == second.Outcome && len(first.Receipt) == 0:
		p.Message = fmt.Sprintf("%s said the same at %s, but gave no receipt. Nothing was changed. Give none either, or let %s say it again with the receipt.",
			first.Person.Name, first.At.Format(instantForm), first.Person.Name)
	case first.Outcome == second.Outcome:
		p.Message = fmt.Sprintf("%s said the same at %s, but with another receipt. Nothing was changed. Give the same receipt, or none to take %s's.",
			first.Person.Name, first.At.Format(instantForm), first.Person.Name)
	}
	return p.With("first", first)
}

// effectView is a ledger row with its statements.
func (d *Desk) effectView(ctx context.Context, q store.Querier, e engine.Effect) (EffectView, error) {
	v := EffectView{Effect: e, Needed: 1, Statements: []Statement{}}
	critical, err := d.needsTwo(ctx, q, e)
	if err != nil || !critical {
		return v, err
	}
	v.Needed = 2
	if v.Statements, err = d.statements(ctx, q, e); err != nil || e.Status != engine.Unknown {
		return v, err
	}
	v.Said, err = d.said(ctx, q, e)
	return v, err
}

// said is how far the statements on an unknown effect are, and who is missing.
func (d *Desk) said(ctx context.Context, q store.Querier, e engine.Effect) (string, error) {
	first, err := d.firstSaid(ctx, q, e)
	if err != nil {
		return "", err
	}
	if first == nil {
		return "0 of 2 have said what happened. Its risk is critical: two people must say the same before it moves.", nil
	}
	able, err := d.operators(ctx, q)
	if err != nil {
		return "", err
	}
	others := slices.DeleteFunc(able, func(o approvals.Person) bool { return string(o.ID) == first.Person.ID })
	who := approvals.Names(others) + " can."
	if len(others) == 0 {
		who = "Nobody else has the role " + rolesWith(capOperate) + "; ask an administrator."
	}
	return fmt.Sprintf("1 of 2 has said it: %s says %s (%s). A second person must say the same before it moves. %s", first.Person.Name, saidWords[first.Outcome], first.Evidence, who), nil
}

// needsTwo reports whether two people must settle the effect. Where its risk
// cannot be told any more, they must.
func (d *Desk) needsTwo(ctx context.Context, q store.Querier, e engine.Effect) (bool, error) {
	t, err := d.defs.Tool(ctx, q, e.Tenant, e.ToolDigest)
	if err == nil {
		return t.Risk == twoPersons, nil
	}
	r, err := d.book.Get(ctx, q, e.Tenant, e.Approval)
	if err == nil {
		return r.Risk == twoPersons, nil
	}
	if problem.From(err).Kind == problem.Internal || problem.From(err).Kind == problem.Unavailable {
		return false, err
	}
	return true, nil
}

// operators are the active people who may settle effects, each once.
func (d *Desk) operators(ctx context.Context, q store.Querier) (all []approvals.Person, err error) {
	for _, role := range rolesThat(capOperate) {
		people, err := folk{d.people}.WithRole(ctx, q, Tenant, role)
		if err != nil {
			return nil, err
		}
		for _, p := range people {
			if p.Active && !slices.ContainsFunc(all, func(o approvals.Person) bool { return o.ID == p.ID }) {
				all = append(all, p)
			}
		}
	}
	return all, nil
}
