package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/store"
)

// Checked is a request as its stored subject has it, and whether everything
// beside the subject agrees.
type Checked struct {
	Request     Request
	Subject     json.RawMessage
	Digest      string // recomputed from Subject
	Status      Status
	Decisions   []DecisionRecord // that stand on the current revision
	RulingEntry id.Entry         // of the policy's ruling on the revision; empty: not linked
	Tampered    string           // what does not agree, as a clause; empty: all does
}

// Proof is the audit entry that what may be sent rests on: that of the last
// approval, or of the policy's ruling where nobody was asked.
func (c Checked) Proof() id.Entry {
	if c.Status == Allowed {
		return c.RulingEntry
	}
	for _, d := range slices.Backward(c.Decisions) {
		if d.Verdict == VerdictApprove {
			return id.Entry(d.AuditEntry)
		}
	}
	return ""
}

const (
	sqlRulingEntry = `SELECT coalesce((SELECT entry FROM ruling_entry WHERE tenant = $1 AND request = $2 AND revision = $3), '')`
	sqlExtended    = `SELECT coalesce(max(decide_by), 0) FROM extension WHERE tenant = $1 AND request = $2 AND revision = $3`
	sqlPrevious    = `SELECT coalesce((SELECT digest FROM revision WHERE tenant = $1 AND request = $2 AND revision = $3), '')`
)

// Check recomputes everything from the stored subject and compares it with
// every live column, the deadlines and the decisions. It proves that the rows
// agree with each other; that the digest is the one people decided on is for
// the audit entries to prove. Problem: not_found.
func (b *Book) Check(ctx context.Context, q store.Querier, tenant string, request id.Approval) (Checked, error) {
	i, raw, storedDigest, err := load(ctx, q, tenant, request)
	if err != nil {
		return Checked{}, err
	}
	c := Checked{Request: Request{Item: i}, Subject: raw, Digest: canon.Digest(raw), Status: i.Status}
	if err := c.Request.loadVotes(ctx, q); err != nil {
		return Checked{}, err
	}
	c.Decisions = c.Request.Decisions
	if err := q.QueryRow(ctx, sqlRulingEntry, tenant, string(request), i.Revision).Scan(&c.RulingEntry); err != nil {
		return Checked{}, fmt.Errorf("read ruling entry: %w", err)
	}
	beside, err := readBeside(ctx, q, i)
	if err != nil {
		return Checked{}, err
	}
	beside.digest = storedDigest
	c.Tampered = c.compare(beside)
	return c, nil
}

// beside is what is compared besides the request's row and the decisions.
type beside struct {
	digest   string // the revision row's
	previous string // digest of the revision before
	extended int64  // the latest extension of decide-by; 0: none
}

func readBeside(ctx context.Context, q store.Querier, i Item) (b beside, err error) {
	if err = q.QueryRow(ctx, sqlPrevious, i.Tenant, string(i.ID), i.Revision-1).Scan(&b.previous); err != nil {
		return b, fmt.Errorf("read previous revision: %w", err)
	}
	if err = q.QueryRow(ctx, sqlExtended, i.Tenant, string(i.ID), i.Revision).Scan(&b.extended); err != nil {
		return b, fmt.Errorf("read extensions: %w", err)
	}
	return b, nil
}

// compare returns the first thing that does not agree with the subject.
func (c *Checked) compare(b beside) string {
	live := c.Request.Item
	if len(c.Subject) == 0 {
		return "the current revision is missing"
	}
	if c.Digest != b.digest || c.Digest != live.Digest {
		return "the digest is not that of the stored subject"
	}
	s, err := parseSubject(c.Subject)
	if err != nil {
		return "the stored subject can't be read"
	}
	if err := c.Request.fill(s, c.Subject); err != nil {
		return "the stored subject can't be read"
	}
	if s.Tenant != live.Tenant || s.ID != live.ID {
		return "the stored subject belongs to another request"
	}
	if again, _, err := s.seal(); err != nil || string(again) != string(c.Subject) {
		return "the stored subject does not fit its own hashes"
	}
	if s.Supersedes != b.previous {
		return "the revision before it was exchanged"
	}
	if what := differs(s, c.Digest, live); what != "" {
		return what + " beside the subject was changed"
	}
	if what := c.deadlines(s, live, b.extended); what != "" {
		return what
	}
	return c.votes(s)
}

// differs names the first live column that is not what the subject says.
func differs(s Subject, digest string, live Item) string {
	want, err := s.columns(digest)
	if err != nil {
		return "the subject"
	}
	law, err := lawText(live.law)
	if err != nil {
		return "who may decide"
	}
	have := live.columns(string(law))
	for i, w := range want {
		if have[i].value != w.value {
			return w.words
		}
	}
	return ""
}

// deadlines compares decide-by and execute-by with what follows from the
// subject, its extensions and the last approval.
func (c *Checked) deadlines(s Subject, live Item, extended int64) string {
	decideBy, err := unstamp(s.DecideBy)
	executeBy, err2 := unstamp(s.ExecuteBy)
	if err != nil || err2 != nil {
		return "the stored subject can't be read"
	}
	if extended > 0 {
		decideBy = store.FromMicros(extended)
	}
	if !decideBy.Equal(live.DecideBy) {
		return "decide-by was changed"
	}
	for _, d := range c.Decisions {
		if !d.DecidedAt.Before(decideBy) {
			return "a decision is later than decide-by"
		}
		if by := d.DecidedAt.Add(micros(s.ExecuteWithinUs)); live.Status == Approved && by.After(executeBy) {
			executeBy = by
		}
	}
	if (live.Status == Approved || live.Status == Allowed) && !executeBy.Equal(live.ExecuteBy) {
		return "execute-by was changed"
	}
	return ""
}

// votes compares the status with the decisions and the verdict in the subject.
func (c *Checked) votes(s Subject) string {
	seen := map[id.Person]bool{}
	rejected := false
	for _, d := range c.Decisions {
		switch {
		case d.Digest != c.Digest:
			return "a decision was made on another digest"
		case seen[d.Person]:
			return "a person decided twice"
		case !s.law().standing(Person{ID: d.Person, Active: true, Roles: d.roles(s.Policy.Groups)}, d.Verdict).May:
			return "somebody decided who may not"
		}
		seen[d.Person] = true
		rejected = rejected || d.Verdict == VerdictReject
	}
	complete := count(s.Policy.Groups, recordedGroups(s.Policy.Groups, c.Decisions)).complete
	switch {
	case c.Status == Allowed && (s.Policy.Effect != Allow || len(c.Decisions) > 0):
		return "it is marked as allowed, but the policy did not allow it"
	case c.Status == Approved && (s.Policy.Effect != Approve || !complete || rejected):
		return "it is marked as approved, but the decisions do not approve it"
	case c.Status == Rejected && !rejected:
		return "it is marked as rejected, but nobody rejected it"
	case c.Status == Pending && (s.Policy.Effect != Approve || complete || rejected):
		return "it is marked as pending, but it was decided"
	case c.Status == Denied && s.Policy.Effect != Deny:
		return "it is marked as denied, but the policy did not deny it"
	}
	return ""
}

// roles are the roles of the groups that a decision was recorded for; people
// named one by one stand in their groups by id.
func (d DecisionRecord) roles(groups []Group) []string {
	var roles []string
	for _, g := range groups {
		if g.Role != "" && slices.Contains(d.Groups, g.Name) {
			roles = append(roles, g.Role)
		}
	}
	return roles
}
