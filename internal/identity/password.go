package identity

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"countersign/internal/problem"

	"golang.org/x/crypto/argon2"
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

// hashing bounds how many passwords are hashed at once, so that a flood of
// sign-ins cannot take all memory: two hold 38 MiB.
var hashing = make(chan struct{}, 2)

// checkPassword says what is wrong with a new password.
func checkPassword(password, email string) error {
	bad := problem.New(problem.Invalid, "invalid", "Choose another password.")
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

func derive(password string, salt []byte) []byte {
	hashing <- struct{}{}
	defer func() { <-hashing }()
	return argon2.IDKey([]byte(password), salt, hashPasses, hashMemoryKiB, hashLanes, hashKeyBytes)
}

// hashPassword returns the PHC string of a password.
func hashPassword(password string) (string, error) {
	salt := make([]byte, hashSaltBytes)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("salt password: %w", err)
	}
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemoryKiB, hashPasses, hashLanes,
		b64.EncodeToString(salt), b64.EncodeToString(derive(password, salt))), nil
}

// matches reports whether the password is the one of the PHC string, in time
// that does not depend on where they differ. A string it cannot read matches
// nothing, after the same work.
func matches(password, phc string) bool {
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
	return subtle.ConstantTimeCompare(derive(password, salt), want) == 1 && known
}
