package receipt

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// bundleType is the format of a bundle.
const bundleType = "countersign.bundle/1"

// The kinds of lines that a reader of a bundle must know.
const (
	lineBegin   = "begin"
	lineReceipt = "receipt"
	lineEnd     = "end"
)

// line is one line of a bundle.
type line struct {
	Kind  string          `json:"kind"`
	Value json.RawMessage `json:"value"`
}

// beginning is the first line of a bundle, and ending the last: over every
// byte before it.
type beginning struct {
	Type string `json:"type"`
	Run  string `json:"run"`
}

type ending struct {
	Lines  int    `json:"lines"` // before this one
	Digest string `json:"digest"`
}

// BundleWriter writes a run with everything that belongs to it: JSON Lines, the
// last of which has the digest of all before. It belongs to one goroutine.
type BundleWriter struct {
	to    io.Writer
	sum   hash.Hash
	lines int
}

// NewBundle begins the bundle of a run.
func NewBundle(to io.Writer, run string) (*BundleWriter, error) {
	b := &BundleWriter{to: to, sum: sha256.New()}
	return b, b.Add(lineBegin, beginning{bundleType, run})
}

// Add writes one line.
func (b *BundleWriter) Add(kind string, value any) error {
	raw, err := json.Marshal(value)
	if err == nil {
		raw, err = json.Marshal(line{kind, raw})
	}
	if err != nil {
		return fmt.Errorf("write a bundle's line %s: %w", kind, err)
	}
	if len(raw) >= bytesMax {
		return fmt.Errorf("a bundle's line %s has %d bytes; at most %d are read back", kind, len(raw), bytesMax)
	}
	raw = append(raw, '\n')
	b.lines++
	b.sum.Write(raw)
	_, err = b.to.Write(raw)
	return err
}

// AddReceipt writes a receipt, byte for byte as Check takes it.
func (b *BundleWriter) AddReceipt(receipt []byte) error { return b.Add(lineReceipt, string(receipt)) }

// End writes the last line.
func (b *BundleWriter) End() error {
	return b.Add(lineEnd, ending{b.lines, digestText([sha256.Size]byte(b.sum.Sum(nil)))})
}

// BundleReport says what a bundle that holds has.
type BundleReport struct {
	Run      string
	Lines    map[string]int // by kind
	Receipts []Report
}

// CheckBundle reads a bundle to its end: that nothing of it was changed or cut
// since it was written, and that each receipt in it verifies with the public
// key. The digest of the end proves no author, the receipts do.
func CheckBundle(from io.Reader, publicKey string) (out BundleReport, err error) {
	out.Lines = map[string]int{}
	sum, n := sha256.New(), 0
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, bytesMax)
	for lines.Scan() {
		var l line
		if err := strict(lines.Bytes(), &l); err != nil {
			return out, fmt.Errorf("line %d: %w", n+1, err)
		}
		if l.Kind == lineEnd {
			return out, endsWell(lines, l, n, digestText([sha256.Size]byte(sum.Sum(nil))))
		}
		if err := out.take(l, n, publicKey); err != nil {
			return out, fmt.Errorf("line %d: %w", n+1, err)
		}
		sum.Write(append(lines.Bytes(), '\n'))
		n++
	}
	if err := lines.Err(); err != nil {
		return out, err
	}
	return out, errors.New("its end is missing")
}

// take looks at one line before the end.
func (r *BundleReport) take(l line, before int, publicKey string) error {
	r.Lines[l.Kind]++
	if (l.Kind == lineBegin) != (before == 0) {
		return errors.New("a bundle has one line that begins it, the first")
	}
	switch l.Kind {
	case lineBegin:
		var b beginning
		if err := json.Unmarshal(l.Value, &b); err != nil || b.Type != bundleType {
			return fmt.Errorf("it has the format %q; this program reads %s", b.Type, bundleType)
		}
		r.Run = b.Run
	case lineReceipt:
		var raw string
		if err := json.Unmarshal(l.Value, &raw); err != nil {
			return err
		}
		report, err := Check([]byte(raw), publicKey)
		if err != nil {
			return fmt.Errorf("a receipt does not hold: %w", err)
		}
		r.Receipts = append(r.Receipts, report)
	}
	return nil
}

// endsWell compares the last line with what was read before it.
func endsWell(lines *bufio.Scanner, l line, n int, digest string) error {
	var e ending
	if err := json.Unmarshal(l.Value, &e); err != nil {
		return err
	}
	if e.Lines != n || e.Digest != digest || n == 0 {
		return fmt.Errorf("its end says %d lines of digest %s; there are %d of %s", e.Lines, e.Digest, n, digest)
	}
	if lines.Scan() {
		return errors.New("there is something after its end")
	}
	return lines.Err()
}

// strict reads JSON without fields that nobody knows.
func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
