package enginetest

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Happened is one effect that really happened.
type Happened struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Target is the outside: an HTTP server whose ledger file is the oracle of
// what really happened. /effects knows idempotency keys; /unkeyed does not and
// does everything it is told.
type Target struct {
	URL    string
	Ledger string // path of the ledger file

	mu   sync.Mutex
	Fail func(r *http.Request) int  // status to answer without doing anything; 0: do it
	Lose func(r *http.Request) bool // do it, then answer nothing
}

// NewTarget starts the server for the time of the test.
func NewTarget(t testing.TB) *Target {
	t.Helper()
	o := &Target{Ledger: filepath.Join(t.TempDir(), "ledger.jsonl")}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /read", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, map[string]any{"text": "hello"}) })
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"open": true, "version": 1})
	})
	mux.HandleFunc("POST /effects", func(w http.ResponseWriter, r *http.Request) { o.write(w, r, true) })
	mux.HandleFunc("POST /unkeyed", func(w http.ResponseWriter, r *http.Request) { o.write(w, r, false) })
	mux.HandleFunc("GET /effects", o.list)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	o.URL = srv.URL
	return o
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (o *Target) write(w http.ResponseWriter, r *http.Request, keyed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Fail != nil {
		if status := o.Fail(r); status != 0 {
			answer(w, status, map[string]any{"error": "no"})
			return
		}
	}
	var body struct{ Text string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	h := Happened{Key: r.Header.Get("Idempotency-Key"), Text: body.Text}
	known := false
	for _, past := range ReadLedger(o.Ledger) {
		known = known || past.Key == h.Key
	}
	if !known || !keyed {
		if err := AppendLedger(o.Ledger, h); err != nil {
			answer(w, 500, map[string]any{"error": err.Error()})
			return
		}
	}
	if o.Lose != nil && o.Lose(r) {
		panic(http.ErrAbortHandler)
	}
	answer(w, 201, h)
}

func (o *Target) list(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	items := []Happened{}
	for _, h := range ReadLedger(o.Ledger) {
		if h.Key == r.URL.Query().Get("key") {
			items = append(items, h)
		}
	}
	answer(w, 200, map[string]any{"items": items})
}

// Happened reads the oracle.
func (o *Target) Happened() []Happened { return ReadLedger(o.Ledger) }

// AppendLedger adds a line and syncs the file before it returns.
func AppendLedger(path string, h Happened) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// ReadLedger reads all lines; a file that is not there is empty.
func ReadLedger(path string) (all []Happened) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var h Happened
		if json.Unmarshal(lines.Bytes(), &h) == nil {
			all = append(all, h)
		}
	}
	return all
}
