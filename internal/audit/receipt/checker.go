package receipt

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// The formats of what a receipt holds.
const (
	entryType   = "countersign.entry/1"
	subjectType = "countersign.subject/1"
)

// entry is what a receipt reads of a log entry.
type entry struct {
	Type      string                    `json:"type"`
	Tenant    string                    `json:"tenant"`
	Seq       int64                     `json:"seq"`
	Time      time.Time                 `json:"time"`
	Actor     struct{ Name, ID string } `json:"actor"`
	Authority map[string]string         `json:"authority"`
	Action    string                    `json:"action"`
	Subject   string                    `json:"subject"`
	Digest    string                    `json:"digest"`
	Outcome   string                    `json:"outcome"`
}

type checker struct {
	file   File
	head   Head
	report Report
	frozen string // digest of the frozen request in the subject; empty for a document
	agreed bool   // an entry says that it may be done
	seq    int64  // of the entry before, within a section
}

func (c *checker) fact(format string, args ...any) {
	c.report.Facts = append(c.report.Facts, fmt.Sprintf(format, args...))
}

// subject reads the frozen request from the subject, and that it has the
// digest the subject says. A canonical document holds its parts in canonical
// form, so that the digest is that of the bytes as they stand.
func (c *checker) subject() error {
	var s struct {
		Type          string          `json:"type"`
		Summary       string          `json:"summary"`
		Title         string          `json:"title"`
		Request       json.RawMessage `json:"request"`
		RequestDigest string          `json:"request_digest"`
	}
	if err := json.Unmarshal([]byte(c.file.Subject), &s); err != nil {
		return fmt.Errorf("the subject is not a document: %w", err)
	}
	if s.Type != subjectType {
		return fmt.Errorf("the subject has the format %q, not %s", s.Type, subjectType)
	}
	if len(s.Request) > 0 || s.RequestDigest != "" {
		if got := digestText(sha256.Sum256(s.Request)); got != s.RequestDigest {
			return fmt.Errorf("the request in the subject has the digest %s, not %s", got, s.RequestDigest)
		}
	}
	c.frozen = s.RequestDigest
	c.fact("What was shown: %s (%s)", s.Summary+s.Title, c.file.Digest)
	return nil
}

// included checks one entry's place in the log and that it is about this
// approval and digest.
func (c *checker) included(p Proof, what string) (entry, error) {
	var e entry
	if err := json.Unmarshal([]byte(p.Entry), &e); err != nil {
		return e, fmt.Errorf("%s: the entry is not readable: %w", what, err)
	}
	path := make(tlog.RecordProof, len(p.Path))
	for i, s := range p.Path {
		h, err := tlog.ParseHash(s)
		if err != nil || h.String() != s {
			return e, fmt.Errorf("%s: the proof has a damaged hash", what)
		}
		path[i] = h
	}
	if e.Seq != p.Seq || p.Seq < 0 || p.Seq >= c.head.Size {
		return e, fmt.Errorf("%s: the entry is not at its place", what)
	}
	if err := tlog.CheckRecord(path, c.head.Size, c.head.Root, p.Seq, tlog.RecordHash([]byte(p.Entry))); err != nil {
		return e, fmt.Errorf("%s: the entry is not in the signed log", what)
	}
	if e.Type != entryType {
		return e, fmt.Errorf("%s: the entry has the format %q", what, e.Type)
	}
	if p.Seq <= c.seq {
		return e, fmt.Errorf("%s: entry %d stands after entry %d", what, p.Seq, c.seq)
	}
	c.seq = p.Seq
	if part := strings.Split(c.head.Origin, "/"); len(part) != 4 || part[2] != e.Tenant {
		return e, fmt.Errorf("%s: the entry is of the tenant %q, the head of %s", what, e.Tenant, c.head.Origin)
	}
	if e.Digest != c.file.Digest {
		return e, fmt.Errorf("%s: the entry is about %s, not about what was shown", what, e.Digest)
	}
	return e, nil
}

func (c *checker) rulings() error {
	if len(c.file.Rulings) == 0 {
		return errors.New("the receipt has no ruling of the policy, so that nothing says what the approval is about")
	}
	c.seq = -1
	for _, p := range c.file.Rulings {
		e, err := c.included(p, "ruling")
		if err != nil {
			return err
		}
		if e.Subject != c.file.Approval {
			return fmt.Errorf("ruling: the entry is about %s", e.Subject)
		}
		c.agreed = c.agreed || e.Outcome == "allowed"
		c.fact("%s: the policy's ruling was %s (rule %s)", at(e), e.Outcome, e.Authority["rule"])
	}
	return nil
}

func (c *checker) decisions() error {
	c.seq = -1
	for _, p := range c.file.Decisions {
		e, err := c.included(p, "decision")
		if err != nil {
			return err
		}
		if e.Subject != c.file.Approval || e.Action != "approval.approve" && e.Action != "approval.reject" {
			return fmt.Errorf("decision: the entry is %s of %s", e.Action, e.Subject)
		}
		c.agreed = c.agreed || e.Action == "approval.approve" && e.Outcome == "approved"
		c.fact("%s: %s by %s as %s", at(e), e.Action, e.Actor.Name, e.Authority["role"])
	}
	return nil
}

// effects checks that what was sent was agreed to, and is what the subject
// froze.
func (c *checker) effects() error {
	c.seq = -1
	for _, p := range c.file.Effects {
		e, err := c.included(p, "effect")
		if err != nil {
			return err
		}
		sent := e.Authority["request_digest"]
		switch {
		case sent == "" && e.Action == "effect.sent":
			return errors.New("effect: the entry does not say which request was sent")
		case sent != "" && sent != c.frozen:
			return fmt.Errorf("effect: the request that was sent has the digest %s; the one approved has %s", sent, c.frozen)
		case sent != "" && !c.agreed:
			return errors.New("effect: a request was sent, and no entry says that it was agreed to")
		}
		c.fact("%s: %s, %s", at(e), e.Action, e.Outcome)
	}
	return nil
}

func at(e entry) string { return e.Time.UTC().Format("2006-01-02 15:04:05 MST") }
