package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// announced is what console demo --json prints.
type announced struct {
	URL      string `json:"url"`
	Accounts []struct {
		Email, Password string
		Roles           []string
	} `json:"accounts"`
	Tokens map[string]string `json:"tokens"`
}

// demonstrate runs the command until stop is called, which returns all it
// wrote and what came of it.
func demonstrate(t *testing.T, c demoCmd) (said announced, stop func() (string, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1) // Run's one result
	c.console = "/nonexistent"   // this program is the tests: it must not be started again
	go func() {
		err := c.Run(ctx, env{out: w, err: io.Discard})
		_ = w.CloseWithError(io.EOF) // never fails
		ended <- err
	}()
	var all bytes.Buffer
	if err := json.NewDecoder(io.TeeReader(r, &all)).Decode(&said); err != nil {
		cancel()
		t.Fatalf("what it printed: %v; it ended with %v", err, <-ended)
	}
	rest := make(chan struct{})
	go func() { defer close(rest); _, _ = io.Copy(&all, r) }() // ends with the command
	return said, func() (string, error) {
		cancel()
		err := <-ended
		<-rest
		return all.String(), err
	}
}

func TestDemo_JSONIsOneObjectWithWhatTestsNeed(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	said, stop := demonstrate(t, demoCmd{Listen: "127.0.0.1:0", JSON: true})
	ready := answers(t, said.URL+"/readyz", "")
	runs := answers(t, said.URL+"/api/v1/runs", said.Tokens["agent"])
	approvals := answers(t, said.URL+"/api/v1/approvals", said.Tokens["operator"])
	left := folders(t, temp)
	printed, err := stop()
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]int{200, 200, 200}, []int{ready, runs, approvals}); diff != "" {
		t.Errorf("answers: %s", diff)
	}
	if len(left) != 1 || len(folders(t, temp)) != 0 {
		t.Errorf("temporary folders: %v while it ran, %v afterwards", left, folders(t, temp))
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal([]byte(printed), &whole); err != nil || len(whole) != 3 {
		t.Errorf("standard output is more or less than one object: %v\n%s", err, printed)
	}
	roles := map[string][]string{}
	for _, a := range said.Accounts {
		roles[a.Email] = a.Roles
	}
	want := map[string][]string{"ana@demo.example": {"approver", "finance", "operator"}, "ben@demo.example": {"approver", "finance"},
		"chloe@demo.example": {"admin", "auditor"}, "dev@demo.example": {"builder"}}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Error(diff)
	}
}

// answers returns the status of the page as soon as there is one.
func answers(t *testing.T, url, token string) int {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = res.Body.Close() // nothing of it is read
			return res.StatusCode
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func folders(t *testing.T, in string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(in, "countersign-demo-*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDemo_KeepsWhatItWasToldToKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	for range 2 {
		said, stop := demonstrate(t, demoCmd{Listen: "127.0.0.1:0", Data: dir, JSON: true})
		if status := answers(t, said.URL+"/api/v1/runs", said.Tokens["agent"]); status != 200 {
			t.Errorf("answered %d", status)
		}
		if _, err := stop(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "workflows", "weekly-report.yaml")); err != nil {
		t.Error(err)
	}
}

func TestDemo_ListensOnThisMachineOnly(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0", "nonsense"} {
		dir := filepath.Join(t.TempDir(), "untouched")
		err := demoCmd{Listen: addr, Data: dir}.Run(t.Context(), env{out: io.Discard, err: io.Discard})
		if err == nil {
			t.Errorf("it listened on %s", addr)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: it made the folder before it refused", addr)
		}
	}
}
