// Package id makes the opaque identifiers of the product: a prefix that names
// the kind, then 48 bits of milliseconds and 80 random bits in Crockford
// base32 (the ULID layout), so that ids sort by the time they were made.
//
// It guarantees uniqueness within a millisecond by chance alone (80 bits) and
// a fixed length per kind. It must not know what the ids are ids of.
package id

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"time"
)

// The identifier types. Each is text with its own prefix.
type (
	Run      string // run_…
	Action   string // act_…
	Approval string // apr_…
	Decision string // dec_…
	Effect   string // eff_…
	Entry    string // ent_…
	Person   string // usr_…
	Token    string // tok_…
	Session  string // ses_…
)

// Constructors, one per kind; now gives the sortable part.
func NewRun(now time.Time) Run           { return Run(mint("run_", now)) }
func NewAction(now time.Time) Action     { return Action(mint("act_", now)) }
func NewApproval(now time.Time) Approval { return Approval(mint("apr_", now)) }
func NewDecision(now time.Time) Decision { return Decision(mint("dec_", now)) }
func NewEffect(now time.Time) Effect     { return Effect(mint("eff_", now)) }
func NewEntry(now time.Time) Entry       { return Entry(mint("ent_", now)) }
func NewPerson(now time.Time) Person     { return Person(mint("usr_", now)) }
func NewToken(now time.Time) Token       { return Token(mint("tok_", now)) }
func NewSession(now time.Time) Session   { return Session(mint("ses_", now)) }

// alphabet is Crockford's base32 in lower case: no i, l, o, u.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// length is that of the part after the prefix: 128 bits in base32.
const length = 26

func mint(prefix string, now time.Time) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(now.UnixMilli())<<16)
	if _, err := rand.Read(raw[6:]); err != nil {
		panic("id: the system has no randomness: " + err.Error())
	}
	return prefix + encode(raw)
}

// encode writes 128 bits as 26 digits, most significant first, so that text
// order is time order.
func encode(raw [16]byte) string {
	hi, lo := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	var out [length]byte
	for i := length - 1; i >= 0; i-- {
		out[i] = alphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}

// Valid reports whether s has the prefix and the shape of an id made here.
func Valid(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || len(rest) != length {
		return false
	}
	for i := range len(rest) {
		if strings.IndexByte(alphabet, rest[i]) < 0 {
			return false
		}
	}
	return true
}
