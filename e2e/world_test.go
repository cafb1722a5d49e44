package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait for the console to come to something.
const patience = 30 * time.Second

var (
	binary   string // the console, built once
	chromium string // a browser, or "" where none is
)

func TestMain(m *testing.M) {
	chromium = findBrowser()
	if chromium == "" && os.Getenv("CI") == "true" {
		fmt.Fprintln(os.Stderr, "e2e: no Chromium found; with CI=true the journeys are required")
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "countersign-e2e-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "console")
	build := exec.Command("go", "build", "-o", binary, "countersign/cmd/console")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: build the console:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func findBrowser() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// account is one person of the demo.
type account struct {
	Email, Password string
	Roles           []string
}

// world is a running demo.
type world struct {
	URL      string
	Accounts []account
	Tokens   map[string]string
	Data     string
}

// open starts the demo on free ports and ends it with the test.
func open(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(binary, "demo", "--listen", "127.0.0.1:0", "--data", dir, "--json", "--log-level", "error")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr lockedBuffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(cmd); err != nil {
			t.Errorf("the demo ended with %v: %s", err, stderr.String())
		}
	})
	w := &world{Data: dir}
	decoded := make(chan error, 1)
	go func() { decoded <- json.NewDecoder(bufio.NewReader(out)).Decode(w) }()
	select {
	case err := <-decoded:
		if err != nil {
			t.Fatalf("the demo printed no JSON: %v; %s", err, stderr.String())
		}
	case <-time.After(patience):
		t.Fatalf("the demo did not start: %s", stderr.String())
	}
	return w
}

// end stops the demo as somebody does who does not wait for what is under way:
// with a second interrupt.
func end(cmd *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case err := <-ended:
			return err
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// lockedBuffer is a buffer that a process writes while a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// with returns an account that has the role.
func (w *world) with(t *testing.T, role string) account {
	t.Helper()
	for _, a := range w.Accounts {
		if slices.Contains(a.Roles, role) {
			return a
		}
	}
	t.Fatalf("the demo has nobody with the role %s", role)
	return account{}
}

// api calls the console as the demo's agent.
func (w *world) api(t *testing.T, method, path string, in, out any) int {
	t.Helper()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, w.URL+"/api/v1"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.Tokens["agent"])
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil && res.StatusCode < 300 {
		if err := json.Unmarshal(raw, out); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, raw)
		}
	}
	if res.StatusCode >= 300 && out != nil {
		t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, raw)
	}
	return res.StatusCode
}

// refund starts a run that wants to refund, and returns its request once it
// waits for a person.
func (w *world) refund(t *testing.T, order string, cents int) (run, approval string) {
	t.Helper()
	var r struct {
		ID         string
		WaitingFor []struct{ Kind, Subject string } `json:"waiting_for"`
	}
	w.api(t, "POST", "/runs", map[string]any{"workflow": "refund", "input": map[string]any{"order_id": order, "amount": cents, "why": "The parcel arrived broken."}}, &r)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		w.api(t, "GET", "/runs/"+r.ID, nil, &r)
		for _, f := range r.WaitingFor {
			if f.Kind == "approval" && f.Subject != "" {
				return r.ID, f.Subject
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the refund of order %s never waited for approval", order)
	return "", ""
}

// until waits until a run has the status.
func (w *world) until(t *testing.T, run, status string) {
	t.Helper()
	var r struct{ Status string }
	for end := time.Now().Add(patience); time.Now().Before(end); {
		w.api(t, "GET", "/runs/"+run, nil, &r)
		if r.Status == status {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("run %s is %s, want %s", run, r.Status, status)
}
