package demo

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"countersign/internal/desk"

	"github.com/google/go-cmp/cmp"
)

func TestDemo_ItsFolderWorksAgainAtTheNextStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, stop := open(t, dir)
	for _, s := range seeds()[:2] {
		if err := first.plant(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	before := stories(t, first)
	stop()
	policy := filepath.Join(dir, "policies", "default.yaml")
	if err := os.WriteFile(policy, append(read(t, policy), "# mine\n"...), 0o644); err != nil {
		t.Fatal(err)
	}

	second, stop := open(t, dir)
	defer stop()
	for _, s := range seeds()[:2] {
		if err := second.plant(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, stories(t, second)); diff != "" {
		t.Errorf("the stories were told twice: %s", diff)
	}
	people, err := second.Instance.Desk.People(t.Context(), desk.Terminal())
	if err != nil || len(people) != len(accounts()) {
		t.Errorf("%d people, %v", len(people), err)
	}
	for name, secret := range first.Tokens {
		if _, err := second.Instance.Desk.TokenPrincipal(t.Context(), secret); err == nil || second.Tokens[name] == secret {
			t.Errorf("the token %s of the first start still works", name)
		}
	}
	if !strings.HasSuffix(string(read(t, policy)), "# mine\n") {
		t.Error("a changed file was overwritten")
	}
	if info, err := os.Stat(filepath.Join(dir, tokenFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret's file: %v %v", info.Mode(), err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDemo_AccountsSignInAndTokensWork(t *testing.T) {
	t.Parallel()
	d, stop := open(t, t.TempDir())
	defer stop()
	for _, a := range d.Accounts {
		p, err := d.Instance.Desk.TerminalPrincipal(t.Context(), a.Email, a.Password)
		if err != nil {
			t.Errorf("%s: %v", a.Email, err)
		}
		if diff := cmp.Diff(a.Roles, p.Roles); diff != "" {
			t.Errorf("%s: %s", a.Email, diff)
		}
	}
	for name, kind := range map[string]string{"agent": "machine", "operator": "person"} {
		p, err := d.Instance.Desk.TokenPrincipal(t.Context(), d.Tokens[name])
		if err != nil || p.Kind != kind {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func TestDemo_LeavesNothingRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	_, stop := open(t, t.TempDir())
	stop()
	eventually(t, "every goroutine ended", func() bool { return runtime.NumGoroutine() <= before })
}

func TestDemo_UnknownDocumentsAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.Context(), Options{Dir: t.TempDir(), Documents: "/nowhere/at/all"}); err == nil || !strings.Contains(err.Error(), "--documents") {
		t.Errorf("got %v", err)
	}
}
