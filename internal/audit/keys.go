package audit

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"countersign/internal/audit/receipt"
	"countersign/internal/problem"
	"countersign/internal/store"

	"golang.org/x/mod/sumdb/note"
)

// Names of the files beside the database.
const (
	KeyFile    = "audit.key"  // the signing key: readable by the service alone, not in backups
	PublicFile = "audit.pub"  // its verifier key, then those before it, a line each: copy it to whoever checks receipts
	HeadFile   = "audit.head" // the last signed heads, outside the database

	nextKeyFile = KeyFile + ".next" // the key a rotation goes to, until its commit is known
)

// key is one pair of halves; former keys have no secret half any more.
type key struct {
	public   string
	verifier note.Verifier
	signer   note.Signer
}

// keyring is the keys of a log, as its files say: nothing of it comes from
// the database.
type keyring struct {
	current key
	former  []key // the newest first
	next    *key  // while a rotation is under way
}

// verifiers lists every key, beginning with first.
func (r *keyring) verifiers(first note.Verifier) []note.Verifier {
	all := []note.Verifier{first, r.current.verifier}
	if r.next != nil {
		all = append(all, r.next.verifier)
	}
	for _, k := range r.former {
		all = append(all, k.verifier)
	}
	return all
}

// open verifies a head that any of the keys may have signed.
func (r *keyring) open(signed string) (h receipt.Head, err error) {
	for _, v := range r.verifiers(r.current.verifier) {
		if h, err = receipt.OpenHead(signed, r.verifiers(v)...); err == nil {
			return h, nil
		}
	}
	return h, err
}

// named returns the key with the public half; nil if the files have none.
func (r *keyring) named(public string) note.Verifier {
	if r.current.public == public {
		return r.current.verifier
	}
	for _, k := range r.former {
		if k.public == public {
			return k.verifier
		}
	}
	return nil
}

// lines is the content of PublicFile.
func (r *keyring) lines() string {
	b := r.current.public + "\n"
	for _, k := range r.former {
		b += k.public + "\n"
	}
	return b
}

// newKey makes a pair and returns it with the text of its secret half.
func newKey(name string) (key, string, error) {
	secret, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return key{}, "", fmt.Errorf("make the audit key: %w", err)
	}
	k, err := readKey(secret)
	if err == nil && k.public != public {
		err = errors.New("make the audit key: its halves differ")
	}
	return k, secret, err
}

// readKey reads a secret half and works out its public one: of a note key,
// "PRIVATE+KEY+<name>+<hash>+<algorithm and seed>".
func readKey(secret string) (k key, err error) {
	if k.signer, err = note.NewSigner(secret); err != nil {
		return k, err
	}
	parts := strings.SplitN(secret, "+", 5)
	raw, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(raw) != 1+ed25519.SeedSize {
		return k, errors.New("it is not an Ed25519 key")
	}
	public := ed25519.NewKeyFromSeed(raw[1:]).Public().(ed25519.PublicKey)
	if k.public, err = note.NewEd25519VerifierKey(k.signer.Name(), public); err != nil {
		return k, err
	}
	k.verifier, err = note.NewVerifier(k.public)
	return k, err
}

// loadKeys reads the files, or makes the first key of a log without entries.
func (l *Log) loadKeys(ctx context.Context) error {
	if err := l.finishRename(); err != nil {
		return err
	}
	path := filepath.Join(l.dir, KeyFile)
	secret, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := l.refuseNewKey(ctx, path); err != nil {
			return err
		}
		return l.firstKey(path)
	}
	if err != nil {
		return fmt.Errorf("read the audit key: %w", err)
	}
	current, err := readKey(strings.TrimSpace(string(secret)))
	if err != nil {
		return fmt.Errorf("the audit key %s is damaged: %w; restore it from where you keep it", path, err)
	}
	public, err := os.ReadFile(filepath.Join(l.dir, PublicFile))
	if err != nil {
		return fmt.Errorf("read the audit key's public half: %w", err)
	}
	l.ring = &keyring{current: current}
	return l.ring.readPublic(strings.Fields(string(public)))
}

// readPublic reads the former keys, and checks that the current one is first.
func (r *keyring) readPublic(lines []string) error {
	at := slices.Index(lines, r.current.public)
	if at != 0 {
		return problem.New(problem.Conflict, "audit_key_mismatch", "%s and %s are not halves of one key; restore both from where you keep them.", KeyFile, PublicFile)
	}
	for _, line := range lines[1:] {
		v, err := note.NewVerifier(line)
		if err != nil {
			return fmt.Errorf("the file %s is damaged: %w", PublicFile, err)
		}
		r.former = append(r.former, key{public: line, verifier: v})
	}
	return nil
}

// refuseNewKey refuses to make a key for a log that had one: a new key would
// hide that the old one is gone.
func (l *Log) refuseNewKey(ctx context.Context, path string) error {
	return l.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		var entries, heads int64
		err := q.QueryRow(ctx, `SELECT (SELECT COUNT(*) FROM audit_entry), (SELECT COUNT(*) FROM audit_head)`).Scan(&entries, &heads)
		if err == nil && entries+heads > 0 {
			return problem.New(problem.Conflict, "audit_key_missing",
				"The log has %d entries but the key %s is gone. Restore the file; a new key would hide that the old one was lost.", entries, path)
		}
		return err
	})
}

// firstKey writes a new pair: the secret half readable by this user alone.
func (l *Log) firstKey(path string) error {
	k, secret, err := newKey("countersign-" + l.instance)
	if err != nil {
		return err
	}
	l.ring = &keyring{current: k}
	if err := writeDurably(filepath.Join(l.dir, PublicFile), []byte(l.ring.lines()), 0o644); err != nil {
		return err
	}
	return writeDurably(path, []byte(secret+"\n"), 0o600)
}

// writeDurably replaces a file as a whole, synced with its folder.
func writeDurably(path string, content []byte, mode os.FileMode) (err error) {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return renameDurably(temp, path)
}

func renameDurably(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(to), err)
	}
	folder, err := os.Open(filepath.Dir(to))
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}
