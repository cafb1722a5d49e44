package receipt_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"countersign/internal/audit/receipt"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// world is a log with its key, outside of any database.
type world struct {
	t      testing.TB
	signer note.Signer
	public string
	hashes tlog.HashReaderFunc
	stored []tlog.Hash
	bodies []string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	secret, public, err := note.GenerateKey(rand.Reader, "countersign-test")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, public: public}
	if w.signer, err = note.NewSigner(secret); err != nil {
		t.Fatal(err)
	}
	w.hashes = func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, idx := range indexes {
			out[i] = w.stored[idx]
		}
		return out, nil
	}
	return w
}

// add logs an entry and returns its place.
func (w *world) add(tenant, action, subject, digest, outcome, authority string) int64 {
	w.t.Helper()
	seq := int64(len(w.bodies))
	body := fmt.Sprintf(`{"action":%q,"actor":{"id":"usr_a","name":"Ana"},"authority":{%s},"digest":%q,"outcome":%q,"seq":%d,"subject":%q,"tenant":%q,"time":"2026-12-01T09:00:00Z","type":"countersign.entry/1"}`,
		action, authority, digest, outcome, seq, subject, tenant)
	hashes, err := tlog.StoredHashes(seq, []byte(body), w.hashes)
	if err != nil {
		w.t.Fatal(err)
	}
	w.stored, w.bodies = append(w.stored, hashes...), append(w.bodies, body)
	return seq
}

func (w *world) head(signers ...note.Signer) string {
	w.t.Helper()
	size := int64(len(w.bodies))
	root, err := tlog.TreeHash(size, w.hashes)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(signers) == 0 {
		signers = []note.Signer{w.signer}
	}
	signed, err := receipt.Head{Origin: "countersign/test/default/1", Size: size, Root: root}.Sign(signers...)
	if err != nil {
		w.t.Fatal(err)
	}
	return signed
}

func (w *world) proofs(seqs ...int64) []receipt.Proof {
	w.t.Helper()
	out := []receipt.Proof{}
	for _, seq := range seqs {
		path, err := tlog.ProveRecord(int64(len(w.bodies)), seq, w.hashes)
		if err != nil {
			w.t.Fatal(err)
		}
		p := receipt.Proof{Seq: seq, Entry: w.bodies[seq], Path: []string{}}
		for _, h := range path {
			p.Path = append(p.Path, h.String())
		}
		out = append(out, p)
	}
	return out
}

const request = `{"method":"POST","url":"http://shop/refunds"}`

var (
	subject = `{"kind":"action","request":` + request + `,"request_digest":"` + digest(request) + `","summary":"Refund 5.00 EUR","type":"countersign.subject/1"}`
	sent    = `"request_digest":"` + digest(request) + `"`
)

// approved is a world with one approval that was asked, decided and carried
// out, among other entries, and its receipt.
func approved(t testing.TB) (*world, receipt.File) {
	t.Helper()
	w := newWorld(t)
	d := digest(subject)
	w.add("default", "run.start", "run_1", "", "ok", "")
	ruled := w.add("default", "approval.requested", "apr_1", d, "pending", `"rule":"large"`)
	decided := w.add("default", "approval.approve", "apr_1", d, "approved", `"role":"finance"`)
	w.add("default", "run.resume", "run_1", "", "ok", "")
	began := w.add("default", "effect.sent", "eff_1", d, "sent", sent)
	ended := w.add("default", "effect.confirmed", "eff_1", d, "confirmed", "")
	return w, receipt.File{Approval: "apr_1", Digest: d, Subject: subject, Head: w.head(),
		Rulings: w.proofs(ruled), Decisions: w.proofs(decided), Effects: w.proofs(began, ended)}
}

func encode(t testing.TB, f receipt.File) []byte {
	t.Helper()
	raw, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestCheck_NeedsThePublicKeyAlone(t *testing.T) {
	w, f := approved(t)
	r, err := receipt.Check(encode(t, f), w.public+"\n")
	if err != nil || r.Approval != "apr_1" || r.Digest != f.Digest || r.Size != 6 || len(r.Facts) != 5 {
		t.Errorf("Check = %+v, %v; want five facts of apr_1", r, err)
	}
}

func TestCheck_TakesAFileOfPresentAndFormerKeys(t *testing.T) {
	w, f := approved(t)
	other := newWorld(t)
	if _, err := receipt.Check(encode(t, f), other.public+"\n"+w.public+"\n"); err != nil {
		t.Errorf("signed by the second key: %v", err)
	}
	for name, keys := range map[string]string{"another key": other.public, "no key": " \n", "no key at all": "nonsense", "too many": strings.Repeat(other.public+"\n", 101)} {
		if _, err := receipt.Check(encode(t, f), keys); err == nil {
			t.Errorf("%s: the receipt holds", name)
		}
	}
}

// Every bit of the file, one after the other: nothing in it is free to change.
func TestCheck_NoBitMayChange(t *testing.T) {
	w, f := approved(t)
	raw := encode(t, f)
	for at := range raw {
		for bit := range 8 {
			raw[at] ^= 1 << bit
			if _, err := receipt.Check(raw, w.public); err == nil {
				t.Fatalf("the receipt holds with bit %d of byte %d changed, to %q", bit, at, raw[max(0, at-10):min(len(raw), at+10)])
			}
			raw[at] ^= 1 << bit
		}
	}
}

func TestCheck_NothingMayBeAddedOrCut(t *testing.T) {
	w, f := approved(t)
	raw := encode(t, f)
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, len(raw)).Draw(t, "at")
		changed := append([]byte{}, raw[:at]...)
		if rapid.Bool().Draw(t, "add") {
			changed = append(changed, rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "bytes")...)
			changed = append(changed, raw[at:]...)
		} else {
			changed = append(changed, raw[min(len(raw), at+rapid.IntRange(1, 40).Draw(t, "cut")):]...)
		}
		if _, err := receipt.Check(changed, w.public); err == nil && string(changed) != string(raw) {
			t.Fatalf("the receipt holds after a change at %d", at)
		}
	})
}

func TestCheck_RefusesWhatDoesNotBelongTogether(t *testing.T) {
	other := digest("another subject")
	otherRequest := `"request_digest":"` + digest("another request") + `"`
	cases := map[string]func(w *world, f *receipt.File){
		"a decision on another digest": func(w *world, f *receipt.File) {
			f.Decisions = w.proofs(w.add("default", "approval.approve", "apr_1", other, "approved", ""))
		},
		"a decision on another approval": func(w *world, f *receipt.File) {
			f.Decisions = w.proofs(w.add("default", "approval.approve", "apr_2", f.Digest, "approved", ""))
		},
		"an entry of another kind": func(w *world, f *receipt.File) { f.Decisions = f.Rulings },
		"an entry of another tenant": func(w *world, f *receipt.File) {
			f.Decisions = w.proofs(w.add("other", "approval.approve", "apr_1", f.Digest, "approved", ""))
		},
		"an outcome of another digest": func(w *world, f *receipt.File) {
			f.Effects = w.proofs(w.add("default", "effect.confirmed", "eff_1", other, "confirmed", ""))
		},
		"another request than approved": func(w *world, f *receipt.File) {
			f.Effects = w.proofs(w.add("default", "effect.sent", "eff_1", f.Digest, "sent", otherRequest))
		},
		"a sending that names no request": func(w *world, f *receipt.File) {
			f.Effects = w.proofs(w.add("default", "effect.sent", "eff_1", f.Digest, "sent", ""))
		},
		"a sending without the agreement": func(w *world, f *receipt.File) { f.Decisions = []receipt.Proof{} },
		"no ruling":                       func(w *world, f *receipt.File) { f.Rulings = []receipt.Proof{} },
		"an entry twice":                  func(w *world, f *receipt.File) { f.Effects = append(f.Effects, f.Effects[1]) },
		"entries in another order":        func(w *world, f *receipt.File) { f.Effects[0], f.Effects[1] = f.Effects[1], f.Effects[0] },
		"an entry at another's place":     func(w *world, f *receipt.File) { f.Decisions[0].Seq = 1 },
		"another approval":                func(w *world, f *receipt.File) { f.Approval = "apr_2" },
		"another subject":                 func(w *world, f *receipt.File) { f.Subject = strings.Replace(subject, "5.00", "6.00", 1) },
		"another subject with its digest": func(w *world, f *receipt.File) {
			f.Subject = strings.Replace(subject, "5.00", "6.00", 1)
			f.Digest = digest(f.Subject)
		},
		"a head that two signed": func(w *world, f *receipt.File) { f.Head = w.head(w.signer, newWorld(w.t).signer) },
		"a head signed twice": func(w *world, f *receipt.File) {
			lines := strings.SplitAfter(f.Head, "\n")
			f.Head += lines[len(lines)-2]
		},
		"an entry that is not in the head": func(w *world, f *receipt.File) { w.add("default", "x", "", "", "", ""); f.Effects = w.proofs(4, 5) },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			w, f := approved(t)
			held := f.Head
			change(w, &f)
			if f.Head == held && len(w.bodies) > 6 && name != "an entry that is not in the head" {
				f.Head = w.head() // over the entries the case added
				for _, ps := range [][]receipt.Proof{f.Rulings, f.Decisions, f.Effects} {
					for i := range ps {
						ps[i] = w.proofs(ps[i].Seq)[0]
					}
				}
			}
			if r, err := receipt.Check(encode(t, f), w.public); err == nil {
				t.Errorf("it holds: %+v", r)
			}
		})
	}
}

func TestCheck_AnActionThatThePolicyAllowedNeedsNoDecision(t *testing.T) {
	w := newWorld(t)
	d := digest(subject)
	ruled := w.add("default", "approval.requested", "apr_1", d, "allowed", `"rule":"small"`)
	began := w.add("default", "effect.sent", "eff_1", d, "sent", sent)
	f := receipt.File{Approval: "apr_1", Digest: d, Subject: subject, Head: w.head(), Rulings: w.proofs(ruled), Decisions: []receipt.Proof{}, Effects: w.proofs(began)}
	if _, err := receipt.Check(encode(t, f), w.public); err != nil {
		t.Errorf("Check = %v", err)
	}
}

func TestCheck_ReadsAtMostSixteenMebibytes(t *testing.T) {
	if _, err := receipt.Check(make([]byte, 16<<20+1), ""); err == nil || !strings.Contains(err.Error(), "at most 16777216") {
		t.Errorf("Check = %v, want the limit named", err)
	}
}

func TestOpenHead_SignatureHasOneSpelling(t *testing.T) {
	w, f := approved(t)
	v, err := note.NewVerifier(w.public)
	if err != nil {
		t.Fatal(err)
	}
	end := strings.LastIndex(f.Head, "=\n") - 1 // the last character, with bits to spare
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		changed := f.Head[:end] + string(c) + f.Head[end+1:]
		if _, err := receipt.OpenHead(changed, v); (err == nil) != (changed == f.Head) {
			t.Errorf("last character %q for %q: %v", c, f.Head[end], err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	w, file := approved(f)
	raw := encode(f, file)
	f.Add(raw)
	f.Add([]byte(`{"type":"countersign.receipt/1"}`))
	f.Fuzz(func(t *testing.T, changed []byte) {
		if _, err := receipt.Check(changed, w.public); err == nil && string(changed) != string(raw) {
			t.Errorf("another file holds: %q", changed)
		}
	})
}

func FuzzOpenHead(f *testing.F) {
	w, file := approved(f)
	v, err := note.NewVerifier(w.public)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file.Head)
	f.Add("a\n1\n\n\n\u2014 a b\n")
	f.Fuzz(func(t *testing.T, signed string) {
		h, err := receipt.OpenHead(signed, v)
		if err == nil && (signed != file.Head || !strings.HasPrefix(signed, h.Text())) {
			t.Errorf("another head is signed: %q", signed)
		}
	})
}
