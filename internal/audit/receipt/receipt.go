package receipt

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// fileType is the format of a receipt.
const fileType = "countersign.receipt/1"

// bytesMax bounds a receipt: a subject of a megabyte and its proofs.
const bytesMax = 8 << 20

// Proof is one entry of the log with what shows that it is there.
type Proof struct {
	Seq   int64    `json:"seq"`
	Entry string   `json:"entry"` // canonical countersign.entry/1, byte for byte
	Path  []string `json:"proof"` // inclusion proof under File.Head, base64
}

// File is one approval with its evidence.
type File struct {
	Type      string  `json:"type"`
	Approval  string  `json:"approval"`
	Digest    string  `json:"digest"`  // of Subject
	Subject   string  `json:"subject"` // the canonical document that was decided on, byte for byte
	Head      string  `json:"head"`    // signed note
	Rulings   []Proof `json:"rulings"`
	Decisions []Proof `json:"decisions"`
	Effects   []Proof `json:"effects"` // sent, then the outcome; empty if nothing was sent
}

// Encode is the file as it is written. Check takes exactly these bytes.
func (f File) Encode() ([]byte, error) {
	f.Type = fileType
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(f); err != nil {
		return nil, fmt.Errorf("encode receipt: %w", err)
	}
	return b.Bytes(), nil
}

// entry is what a receipt reads of a log entry.
type entry struct {
	Type      string                    `json:"type"`
	Seq       int64                     `json:"seq"`
	Time      time.Time                 `json:"time"`
	Actor     struct{ Name, ID string } `json:"actor"`
	Authority map[string]string         `json:"authority"`
	Action    string                    `json:"action"`
	Subject   string                    `json:"subject"`
	Digest    string                    `json:"digest"`
	Outcome   string                    `json:"outcome"`
}

// Report says what a receipt that verifies proves, a sentence a line.
type Report struct {
	Approval string
	Digest   string
	Origin   string
	Size     int64
	Facts    []string
}

// Check verifies a receipt with the log's public key. Any doubt is an error
// that names the first thing that does not hold.
func Check(raw []byte, publicKey string) (Report, error) {
	f, err := open(raw)
	if err != nil {
		return Report{}, err
	}
	v, err := note.NewVerifier(publicKey)
	if err != nil {
		return Report{}, fmt.Errorf("the public key cannot be used: %w", err)
	}
	head, err := OpenHead(f.Head, v)
	if err != nil {
		return Report{}, err
	}
	sum := sha256.Sum256([]byte(f.Subject))
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != f.Digest {
		return Report{}, fmt.Errorf("the subject's digest is %s, not %s", got, f.Digest)
	}
	c := &checker{file: f, head: head}
	c.report = Report{Approval: f.Approval, Digest: f.Digest, Origin: head.Origin, Size: head.Size}
	for _, step := range []func() error{c.subject, c.rulings, c.decisions, c.effects} {
		if err := step(); err != nil {
			return Report{}, err
		}
	}
	return c.report, nil
}

// open reads the file and refuses anything that is not exactly what Encode
// writes, so that no byte of it is free to change.
func open(raw []byte) (File, error) {
	if len(raw) > bytesMax {
		return File{}, fmt.Errorf("the receipt has %d bytes; at most %d are read", len(raw), bytesMax)
	}
	var f File
	if err := json.Unmarshal(raw, &f); err != nil {
		return File{}, fmt.Errorf("the file is not a receipt: %w", err)
	}
	if f.Type != fileType {
		return File{}, fmt.Errorf("the file says it is %q, not %s", f.Type, fileType)
	}
	again, err := f.Encode()
	if err != nil {
		return File{}, err
	}
	if !bytes.Equal(again, raw) {
		return File{}, errors.New("the file is not as it was written; something was added, lost or moved")
	}
	return f, nil
}

type checker struct {
	file   File
	head   Head
	report Report
	frozen string // request digest in the subject
}

func (c *checker) fact(format string, args ...any) {
	c.report.Facts = append(c.report.Facts, fmt.Sprintf(format, args...))
}

// subject reads the digest of the frozen request from the subject.
func (c *checker) subject() error {
	var s struct {
		Type          string `json:"type"`
		Kind          string `json:"kind"`
		Summary       string `json:"summary"`
		RequestDigest string `json:"request_digest"`
	}
	if err := json.Unmarshal([]byte(c.file.Subject), &s); err != nil {
		return fmt.Errorf("the subject is not a document: %w", err)
	}
	c.frozen = s.RequestDigest
	c.fact("What was shown: %s (%s)", s.Summary, c.file.Digest)
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
	if e.Seq != p.Seq || p.Seq >= c.head.Size {
		return e, fmt.Errorf("%s: the entry is not at its place", what)
	}
	if err := tlog.CheckRecord(path, c.head.Size, c.head.Root, p.Seq, tlog.RecordHash([]byte(p.Entry))); err != nil {
		return e, fmt.Errorf("%s: the entry is not in the signed log", what)
	}
	if e.Type != "countersign.entry/1" {
		return e, fmt.Errorf("%s: the entry has the format %q", what, e.Type)
	}
	if e.Digest != c.file.Digest {
		return e, fmt.Errorf("%s: the entry is about %s, not about what was shown", what, e.Digest)
	}
	return e, nil
}

func (c *checker) rulings() error {
	for _, p := range c.file.Rulings {
		e, err := c.included(p, "ruling")
		if err != nil {
			return err
		}
		if e.Subject != c.file.Approval {
			return fmt.Errorf("ruling: the entry is about %s", e.Subject)
		}
		c.fact("%s: the policy's ruling was %s (rule %s)", at(e), e.Outcome, e.Authority["rule"])
	}
	return nil
}

func (c *checker) decisions() error {
	for _, p := range c.file.Decisions {
		e, err := c.included(p, "decision")
		if err != nil {
			return err
		}
		if e.Subject != c.file.Approval || e.Action != "approval.approve" && e.Action != "approval.reject" {
			return fmt.Errorf("decision: the entry is %s of %s", e.Action, e.Subject)
		}
		c.fact("%s: %s by %s as %s", at(e), e.Action, e.Actor.Name, e.Authority["role"])
	}
	return nil
}

// effects checks that what was sent is what the subject froze.
func (c *checker) effects() error {
	for _, p := range c.file.Effects {
		e, err := c.included(p, "effect")
		if err != nil {
			return err
		}
		if sent := e.Authority["request_digest"]; sent != "" && sent != c.frozen {
			return fmt.Errorf("effect: the request that was sent has the digest %s; the one approved has %s", sent, c.frozen)
		}
		c.fact("%s: %s, %s", at(e), e.Action, e.Outcome)
	}
	return nil
}

func at(e entry) string { return e.Time.UTC().Format("2006-01-02 15:04:05 MST") }
