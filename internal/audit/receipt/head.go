// Package receipt verifies, with nothing but a public key, what an audit log
// says about one approval: that its entries are in the log, that they name
// the digest of what was shown, and that what was executed is what was
// approved.
//
// It guarantees that a file with any byte changed does not verify. It must
// not know the console, its database or any of its packages, so that an
// outside program can use it alone.
package receipt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Head is the root of a log at a size: a C2SP tlog-checkpoint
// (https://c2sp.org/tlog-checkpoint), three lines and a signature.
type Head struct {
	Origin string // countersign/<instance>/<tenant>/<epoch>
	Size   int64
	Root   tlog.Hash
}

// Text is the head as it is signed.
func (h Head) Text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", h.Origin, h.Size, base64.StdEncoding.EncodeToString(h.Root[:]))
}

// Sign returns the head as a signed note.
func (h Head) Sign(signers ...note.Signer) (string, error) {
	b, err := note.Sign(&note.Note{Text: h.Text()}, signers...)
	if err != nil {
		return "", fmt.Errorf("sign head: %w", err)
	}
	return string(b), nil
}

// OpenHead verifies a signed note and reads the head in it. The first key
// must have signed it, the others may have; a signature of anybody else, a
// second one of the same key, or one in another than the canonical base64
// form is refused, so that no byte of a head is free to change.
func OpenHead(signed string, keys ...note.Verifier) (Head, error) {
	n, err := note.Open([]byte(signed), note.VerifierList(distinct(keys)...))
	if err != nil {
		return Head{}, fmt.Errorf("head is not signed by %s: %w", keys[0].Name(), err)
	}
	first := false
	text := n.Text + "\n"
	for _, s := range n.Sigs {
		line, err := signatureLine(s)
		if err != nil {
			return Head{}, err
		}
		text += line
		first = first || s.Hash == keys[0].KeyHash() && s.Name == keys[0].Name()
	}
	if !first {
		return Head{}, fmt.Errorf("head is not signed by %s+%08x", keys[0].Name(), keys[0].KeyHash())
	}
	if text != signed {
		return Head{}, errors.New("head carries more than its own signatures")
	}
	return parseHead(n.Text)
}

// SignedBy returns the signed note with no other signature than that of key.
func SignedBy(signed string, key note.Verifier) (string, error) {
	n, err := note.Open([]byte(signed), note.VerifierList(key))
	if err != nil {
		return "", fmt.Errorf("head is not signed by %s: %w", key.Name(), err)
	}
	line, err := signatureLine(n.Sigs[0])
	return n.Text + "\n" + line, err
}

// signatureLine is a signature as note.Sign writes it. Decoding is strict:
// the last bits of base64 text may be set without changing its value.
func signatureLine(s note.Signature) (string, error) {
	if _, err := base64.StdEncoding.Strict().DecodeString(s.Base64); err != nil {
		return "", fmt.Errorf("the signature of %s is not in its canonical form", s.Name)
	}
	return "— " + s.Name + " " + s.Base64 + "\n", nil
}

// distinct drops repeated keys, which note refuses.
func distinct(keys []note.Verifier) (out []note.Verifier) {
	for _, k := range keys {
		if !slices.ContainsFunc(out, func(o note.Verifier) bool { return o.Name() == k.Name() && o.KeyHash() == k.KeyHash() }) {
			out = append(out, k)
		}
	}
	return out
}

var errHead = errors.New("head is not an origin, a size and a root, a line each")

func parseHead(text string) (Head, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[0] == "" || lines[3] != "" {
		return Head{}, errHead
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return Head{}, errHead
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return Head{}, errHead
	}
	h := Head{Origin: lines[0], Size: size}
	copy(h.Root[:], root)
	return h, nil
}
