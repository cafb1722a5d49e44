package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"countersign/examples"
	"countersign/internal/demo/standin"
)

// somebody decides and operates in the folders; everybody has one pass phrase.
const (
	somebody   = "ana@example.org"
	passPhrase = "a long pass phrase"
)

// builtIn is where the console was built to, removed when the tests end.
var builtIn string

// built is the console as people get it, built once and only when a test
// needs it.
var built = sync.OnceValues(func() (string, error) {
	var err error
	if builtIn, err = os.MkdirTemp("", "countersign-console-*"); err != nil {
		return "", err
	}
	binary := filepath.Join(builtIn, "console")
	out, err := exec.Command("go", "build", "-o", binary, "countersign/cmd/console").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the console: %w\n%s", err, out)
	}
	return binary, nil
})

// peopled is a sample folder with somebody in it, made once and copied.
var peopled = sync.OnceValues(func() (string, error) {
	binary, err := built()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(builtIn, "peopled")
	if err := os.CopyFS(dir, examples.Files); err != nil {
		return "", err
	}
	add := exec.Command(binary, "user", "add", somebody, "--name", "Ana", "--role", "approver", "--role", "finance", "--role", "operator",
		"--data", dir, "--password-stdin")
	add.Stdin = strings.NewReader(passPhrase + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		return "", fmt.Errorf("add somebody: %w\n%s", err, out)
	}
	return dir, nil
})

// folder is a data folder that real console processes work on, and the outside
// world of its tools, which outlives them.
type folder struct {
	testing.TB
	console string          // the program
	dir     string          // the data folder
	kb      string          // where pages are published
	shop    *standin.Server // the shop and the planner
	ledger  *standin.Ledger // what really happened outside, pages excepted
}

// newFolder copies the sample folder, with somebody in it, and serves its
// stand-ins until the test ends.
func newFolder(t testing.TB) *folder {
	t.Helper()
	f := &folder{TB: t}
	from, err := peopled()
	f.ok(err)
	f.console, err = built()
	f.ok(err)
	top := t.TempDir()
	f.dir = filepath.Join(top, "D")
	f.kb = filepath.Join(f.dir, "kb")
	f.ok(os.CopyFS(f.dir, os.DirFS(from)))
	for _, secret := range []string{"audit.key", "countersign.db"} { // CopyFS widens modes
		f.ok(os.Chmod(filepath.Join(f.dir, secret), 0o600))
	}
	f.ledger, err = standin.OpenLedger(filepath.Join(top, "S"))
	f.ok(err)
	f.shop = standin.NewServer(f.ledger, "demo-shop-token")
	serving := httptest.NewServer(f.shop.Handler())
	t.Cleanup(serving.Close)
	f.replace("console.yaml", "http://127.0.0.1:8099", serving.URL, "stand_ins: ./stand-ins", "stand_ins: "+filepath.Join(top, "S"))
	return f
}

func (f *folder) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// replace changes texts of a file, each of which must be there.
func (f *folder) replace(name string, oldnew ...string) {
	f.Helper()
	path := filepath.Join(f.dir, name)
	raw, err := os.ReadFile(path)
	f.ok(err)
	for i := 0; i < len(oldnew); i += 2 {
		if !bytes.Contains(raw, []byte(oldnew[i])) {
			f.Fatalf("%s does not have %q", name, oldnew[i])
		}
	}
	f.ok(os.WriteFile(path, []byte(strings.NewReplacer(oldnew...).Replace(string(raw))), 0o600))
}

// run runs the console on the folder, as somebody, and returns its exit status
// and what it wrote.
func (f *folder) run(args ...string) (status int, stdout, stderr string) {
	f.Helper()
	cmd := exec.CommandContext(f.Context(), f.console, append(args, "--data", f.dir)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(passPhrase+"\n"), &out, &errs
	err := cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.Exited() {
		return ended.ExitCode(), out.String(), errs.String()
	}
	f.ok(err)
	return 0, out.String(), errs.String()
}

// must runs a command that has to succeed, and returns what it printed.
func (f *folder) must(args ...string) string {
	f.Helper()
	status, stdout, stderr := f.run(args...)
	if status != exitOK {
		f.Fatalf("console %s: exit status %d\n%s", strings.Join(args, " "), status, stderr)
	}
	return stdout
}

// read runs a command that prints JSON and decodes that into v.
func (f *folder) read(v any, args ...string) {
	f.Helper()
	f.ok(json.Unmarshal([]byte(f.must(append(args, "--json")...)), v))
}

// token makes a token; one of somebody who may decide is personal.
func (f *folder) token(name, owner string, scopes ...string) string {
	f.Helper()
	args := []string{"token", "create", name, "--owner", owner}
	if owner == somebody {
		args = append(args, "--personal")
	}
	for _, s := range scopes {
		args = append(args, "--scope", s)
	}
	return strings.TrimSpace(f.must(args...))
}

// happened lists what really happened outside, of a kind.
func (f *folder) happened(kind string) (all []standin.Effect) {
	f.Helper()
	effects, err := f.ledger.Effects()
	f.ok(err)
	for _, e := range effects {
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

// pages lists every file that was written below kb, by its path there.
func (f *folder) pages() map[string]os.FileInfo {
	f.Helper()
	all := map[string]os.FileInfo{}
	f.ok(filepath.Walk(f.kb, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || info.Name() == "index.md" {
			return err
		}
		rel, err := filepath.Rel(f.kb, path)
		all[filepath.ToSlash(rel)] = info
		return err
	}))
	return all
}

// verify fails the test unless the audit log verifies.
func (f *folder) verify() {
	f.Helper()
	if status, _, stderr := f.run("audit", "verify"); status != exitOK || !strings.Contains(stderr, "the log verifies") {
		f.Errorf("audit verify: exit status %d\n%s", status, stderr)
	}
}

// consistent fails the test unless the database is whole.
func (f *folder) consistent() {
	f.Helper()
	out, err := exec.Command(f.console, "check", f.dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "database: consistent") {
		f.Errorf("check: %v\n%s", err, out)
	}
}

// inode tells a file from another one of the same name.
func inode(info os.FileInfo) string {
	return fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino)
}
