package identity

import (
	"strings"
	"testing"

	"countersign/internal/problem"
)

func TestDerive_BoundsHowManyWait(t *testing.T) {
	for range cap(waiting) {
		waiting <- struct{}{}
	}
	defer func() {
		for range cap(waiting) {
			<-waiting
		}
	}()
	if _, err := hashPassword("correct horse battery"); !problem.HasCode(err, "busy") {
		t.Errorf("one more than %d: %v, want busy", waitingMax, err)
	}
	if _, err := (Candidate{}).Check("correct horse battery"); !problem.HasCode(err, "busy") {
		t.Errorf("sign-in: %v, want busy", err)
	}
}

func TestHashPassword_NamesItsCostAndHasItsOwnSalt(t *testing.T) {
	a, err := hashPassword("correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	b, err := hashPassword("correct horse battery")
	if err != nil || a == b || !strings.HasPrefix(a, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("hashes %s and %s, %v; want two of argon2id with 19 MiB, 2 passes, 1 lane", a, b, err)
	}
}

func FuzzMatches_NeverAnyStringItDidNotMake(f *testing.F) {
	f.Add("")
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$AAAA$AAAA")
	f.Add("$argon2id$v=19$m=4194304,t=99,p=1$AAAA$AAAA")
	f.Fuzz(func(t *testing.T, phc string) {
		if ok, err := matches("correct horse battery", phc); ok || err != nil {
			t.Errorf("matches(%q) = %v, %v", phc, ok, err)
		}
	})
}
