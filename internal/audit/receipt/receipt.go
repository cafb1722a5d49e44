package receipt

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// fileType is the format of a receipt.
const fileType = "countersign.receipt/1"

// bytesMax bounds a receipt: the largest subject, four mebibytes whose quotes
// stand escaped, and its proofs.
const bytesMax = 16 << 20

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

// Report says what a receipt that verifies proves, a sentence a line.
type Report struct {
	Approval string
	Digest   string
	Origin   string
	Size     int64
	Facts    []string
}

// Check verifies a receipt with the log's public key; publicKey may have
// several lines, as a file of present and former keys has, and then any of
// them may have signed. Any doubt is an error that names the first thing that
// does not hold.
//
// That an entry is missing from a receipt cannot be seen in it: a receipt
// proves what it holds, and refuses to hold less than the policy's ruling,
// and for what was sent less than the agreement to it.
func Check(raw []byte, publicKey string) (Report, error) {
	f, err := open(raw)
	if err != nil {
		return Report{}, err
	}
	head, err := openWithAny(f.Head, strings.Fields(publicKey))
	if err != nil {
		return Report{}, err
	}
	sum := sha256.Sum256([]byte(f.Subject))
	if got := digestText(sum); got != f.Digest {
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

func digestText(sum [sha256.Size]byte) string { return "sha256:" + hex.EncodeToString(sum[:]) }

// keysMax bounds how many public keys are tried.
const keysMax = 100

// ErrKey is the error of a public key that is none: nothing is said about the
// receipt.
var ErrKey = errors.New("the public key cannot be used")

func openWithAny(signed string, keys []string) (h Head, err error) {
	err = fmt.Errorf("%w: there is none in it", ErrKey)
	if len(keys) > keysMax {
		return h, fmt.Errorf("%w: there are %d in it; at most %d are tried", ErrKey, len(keys), keysMax)
	}
	for _, line := range keys {
		v, bad := note.NewVerifier(line)
		if bad != nil {
			return h, fmt.Errorf("%w: %w", ErrKey, bad)
		}
		if h, err = OpenHead(signed, v); err == nil {
			return h, nil
		}
	}
	return h, err
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
