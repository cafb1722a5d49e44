package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"

	"countersign/internal/problem"
)

// keyBytes is the length of every key: AES-256.
const keyBytes = 32

// ErrAltered is told where a ciphertext is not what was written, or its key is
// another one.
var ErrAltered error = problem.New(problem.Conflict, "sensitive_altered", "A sensitive value in the database was altered, or its key is another one. Keep the folder as it is and compare it with a backup.")

func random(n int) []byte {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic("vault: the system has no randomness: " + err.Error())
	}
	return b
}

// shut encrypts with AES-256-GCM under a random nonce, which it puts in front.
// The context is bound to the ciphertext, so that it opens in its own row only.
func shut(key, plain []byte, context string) ([]byte, error) {
	aead, err := gcm(key)
	if err != nil {
		return nil, err
	}
	nonce := random(aead.NonceSize())
	return aead.Seal(nonce, nonce, plain, []byte(context)), nil
}

func unshut(key, sealed []byte, context string) ([]byte, error) {
	aead, err := gcm(key)
	if err != nil {
		return nil, err
	}
	if len(sealed) < aead.NonceSize() {
		return nil, ErrAltered
	}
	plain, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], []byte(context))
	if err != nil {
		return nil, ErrAltered
	}
	return plain, nil
}

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("use key: %w", err)
	}
	return cipher.NewGCM(block)
}
