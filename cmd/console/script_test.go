package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/examples"
	"countersign/internal/testkit"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this program be the console when it is called like one: by a
// script, or by the sample tool that restarts a service. go test gives flags
// only, so a first argument without a dash is a command.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
	}
	testscript.Main(tidy{m}, map[string]func(){"console": main})
}

// tidy removes what the tests built when they have ended.
type tidy struct{ *testing.M }

func (t tidy) Run() int {
	code := t.M.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn) // a folder of its own, among the temporary ones
	}
	return code
}

// TestScripts runs every script of testdata/script. Each has in D the sample
// folder, and in STANDINS a free address for the stand-ins.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: sampleFolder,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":    status,
			"field":     field,
			"line":      line,
			"until":     until,
			"answering": answering,
			"matches":   matches,
			"nowhere":   nowhere,
			"outsider": func(ts *testscript.TestScript, _ bool, args []string) {
				testkit.Outsider(scripted{TB: t, ts: ts}, ts.MkAbs(args[0]), args[1:]...)
			},
		},
	})
}

// scripted fails the script and not the test around it.
type scripted struct {
	testing.TB
	ts *testscript.TestScript
}

func (s scripted) Helper() {}

func (s scripted) Fatalf(format string, args ...any) { s.ts.Fatalf(format, args...) }

// sampleFolder lays the samples out in D, pointed at the stand-ins.
func sampleFolder(e *testscript.Env) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	e.Setenv("STANDINS", addr)
	dir := filepath.Join(e.WorkDir, "D")
	if err := os.CopyFS(dir, examples.Files); err != nil {
		return err
	}
	name := filepath.Join(dir, "console.yaml")
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(raw), "127.0.0.1:8099", addr)
	text = strings.ReplaceAll(text, "stand_ins: ./stand-ins", "stand_ins: "+filepath.Join(e.WorkDir, "S"))
	return os.WriteFile(name, []byte(text), 0o600)
}

// status runs a command that must end with the status: status 75 console …
func status(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ended *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// field puts a value of the JSON last printed into a variable: field A items.0.id
func field(ts *testscript.TestScript, _ bool, args []string) {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for part := range strings.SplitSeq(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(at) {
				ts.Fatalf("there is no %s in a list of %d", part, len(at))
			}
			v = at[i]
		default:
			ts.Fatalf("there is no %s", args[1])
		}
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

// line puts the one line last printed into a variable: line TOKEN
func line(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// until runs a command again and again until it prints the text.
func until(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v does not print %q: %s", args[1:], args[0], ts.ReadFile("stdout"))
		}
	}
}

// answering waits until the address answers 200, and prints nothing of it.
func answering(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get(args[0])
		if err == nil {
			_ = res.Body.Close() // nothing of it is read
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s does not answer: %v", args[0], err)
		}
	}
}

// nowhere fails if the text is in any of the files, or in a file below any of
// the folders: nowhere SECRET D backup.db
func nowhere(ts *testscript.TestScript, _ bool, args []string) {
	for _, root := range args[1:] {
		looked := 0
		ts.Check(filepath.WalkDir(ts.MkAbs(root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			raw, err := os.ReadFile(path)
			if strings.Contains(string(raw), args[0]) {
				ts.Fatalf("%s has %q", path, args[0])
			}
			looked++
			return err
		}))
		if looked == 0 {
			ts.Fatalf("there is no file in %s", root)
		}
	}
}

// matches counts the times a text is in a file: matches S/ledger.jsonl '"refund"' 1
func matches(ts *testscript.TestScript, _ bool, args []string) {
	if got := strings.Count(ts.ReadFile(args[0]), args[1]); strconv.Itoa(got) != args[2] {
		ts.Fatalf("%s has %q %d times, want %s", args[0], args[1], got, args[2])
	}
}
