package identity

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"countersign/internal/problem"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// The cost of a password: OWASP's recommendation for argon2id, 19 MiB, two
// passes, one lane (Password Storage Cheat Sheet; RFC 9106 names the form).
const (
	hashMemoryKiB = 19 * 1024
	hashPasses    = 2
	hashLanes     = 1
	hashKeyBytes  = 32
	hashSaltBytes = 16
)

// Limits of a password.
const (
	passwordCharsMin = 12
	passwordBytesMax = 256
)

// Limits of hashing at once, so that a flood of sign-ins takes neither all
// memory nor all the time of those who wait: two passwords hold 38 MiB, and
// the last of 64 waits about a second.
const (
	hashingMax = 2
	waitingMax = 64
)

var (
	hashing = make(chan struct{}, hashingMax)
	waiting = make(chan struct{}, waitingMax)
)

// checkPassword says what is wrong with a new password.
func checkPassword(password, email string) error {
	bad := problem.New(problem.Invalid, "invalid", "Choose another password.")
	password = norm.NFC.String(password)
	switch {
	case len([]rune(password)) < passwordCharsMin:
		return bad.At("/password", "must have at least %d characters; a few unrelated words are easy to remember", passwordCharsMin)
	case len(password) > passwordBytesMax:
		return bad.At("/password", "must have at most %d bytes", passwordBytesMax)
	case strings.EqualFold(password, email):
		return bad.At("/password", "must not be the e-mail address")
	}
	return nil
}

// derive hashes a password in Unicode's composed form, so that it is the same
// whichever keyboard wrote it. Problem: busy, when too many wait already.
func derive(password string, salt []byte) ([]byte, error) {
	select {
	case waiting <- struct{}{}:
	default:
		return nil, problem.New(problem.Unavailable, "busy", "Too many people sign in at this moment. Try again in a few seconds.")
	}
	hashing <- struct{}{}
	<-waiting
	defer func() { <-hashing }()
	return argon2.IDKey(norm.NFC.Bytes([]byte(password)), salt, hashPasses, hashMemoryKiB, hashLanes, hashKeyBytes), nil
}

// hashPassword returns the PHC string of a password. Problem: busy.
func hashPassword(password string) (string, error) {
	salt := make([]byte, hashSaltBytes)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("salt password: %w", err)
	}
	key, err := derive(password, salt)
	if err != nil {
		return "", err
	}
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemoryKiB, hashPasses, hashLanes,
		b64.EncodeToString(salt), b64.EncodeToString(key)), nil
}

// matches reports whether the password is the one of the PHC string, in time
// that does not depend on where they differ. A string it cannot read matches
// nothing, after the same work. Problem: busy.
func matches(password, phc string) (bool, error) {
	salt, want := make([]byte, hashSaltBytes), make([]byte, hashKeyBytes)
	known := false
	prefix := fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$", argon2.Version, hashMemoryKiB, hashPasses, hashLanes)
	if rest, ok := strings.CutPrefix(phc, prefix); ok {
		s, k, _ := strings.Cut(rest, "$")
		b64 := base64.RawStdEncoding
		gotSalt, err1 := b64.DecodeString(s)
		gotKey, err2 := b64.DecodeString(k)
		if err1 == nil && err2 == nil && len(gotKey) == hashKeyBytes {
			salt, want, known = gotSalt, gotKey, true
		}
	}
	got, err := derive(password, salt)
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1 && known, err
}
