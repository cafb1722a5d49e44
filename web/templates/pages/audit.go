package pages

import (
	"countersign/web/templates/layout"
	"countersign/web/templates/parts"
)

// AuditView is the log. POST Verify checks it and comes back here with
// Result. Exports are GET.
type AuditView struct {
	Page      layout.Page
	Search    parts.Search // q; filters person and action; fields since and until
	Rows      []EntryRow
	Empty     *parts.Empty
	More      string
	Head      []parts.Fact // size, root, signed, key
	HeadURL   string       // GET: the signed head to copy elsewhere
	Verify    string
	Result    *VerifyResult
	JSONLines string
	CSV       string
}

// EntryRow is one entry of the log.
type EntryRow struct {
	Seq     string // "18,422"
	URL     string
	At      parts.Time
	Who     string // untrusted
	How     string // "session, password", "token ci", "engine"
	Action  string // "approval.decided"
	Subject parts.Link
	Outcome parts.Status
	Digest  string
}

// EntryView is one entry with its proof.
type EntryView struct {
	Page    layout.Page
	Back    parts.Link
	Seq     string
	Action  string
	Facts   []parts.Fact // time, actor, how, authority, channel, subject, run, digest, outcome
	Payload *parts.JSON
	Leaf    *parts.JSON // the bytes the log commits to
	Proof   Proof
}

// Proof is the way from the entry to the signed head.
type Proof struct {
	Holds   bool
	Text    string // "Included under the head of 18,422 entries, signed at 09:14."
	Facts   []parts.Fact
	Hashes  []string // sha256 digests from leaf to root
	Head    *parts.JSON
	Command string // to verify it elsewhere
}

// VerifyResult is the outcome of verifying the log now.
type VerifyResult struct {
	Notice parts.Notice
	Facts  []parts.Fact
	Faults []string // untrusted
}
