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

// OpenHead verifies a signed note with the key and reads the head in it.
func OpenHead(signed string, v note.Verifier) (Head, error) {
	n, err := note.Open([]byte(signed), note.VerifierList(v))
	if err != nil {
		return Head{}, fmt.Errorf("head is not signed by %s: %w", v.Name(), err)
	}
	return parseHead(n.Text)
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
