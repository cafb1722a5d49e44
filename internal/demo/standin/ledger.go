// Package standin is the outside world of the demo and the tests: a shop that
// refunds, a planner that drafts, services that restart.
//
// It guarantees that every effect is durable in its own ledger before the
// caller hears of it, so that the ledger can be asked afterwards how often
// something really happened: it is the oracle of the tests. It must not know
// the console, its database or its words.
package standin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// lineBytesMax bounds one ledger line.
const lineBytesMax = 1 << 20

// Effect is one thing that really happened out there.
type Effect struct {
	Kind string          `json:"kind"` // refund, restart
	ID   string          `json:"id"`
	Key  string          `json:"key,omitempty"` // the idempotency key it came with
	Body json.RawMessage `json:"body"`
	At   time.Time       `json:"at"`
}

// Ledger is an append-only file of effects, one JSON object a line, that
// several processes may share.
type Ledger struct {
	path string
	mu   sync.Mutex // one reader or writer of this process at a time
}

// OpenLedger opens the ledger in the folder, which is made if needed.
func OpenLedger(dir string) (*Ledger, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the stand-ins' folder: %w", err)
	}
	return &Ledger{path: filepath.Join(dir, "ledger.jsonl")}, nil
}

// Record appends the effect unless decide, which sees everything recorded so
// far, returns false. The file is locked for both, and synced before Record
// returns.
func (l *Ledger) Record(decide func(past []Effect) (Effect, bool)) (Effect, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return Effect{}, false, fmt.Errorf("open ledger: %w", err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return Effect{}, false, fmt.Errorf("lock ledger: %w", err)
	}
	past, err := read(f)
	if err != nil {
		return Effect{}, false, err
	}
	e, ok := decide(past)
	if !ok {
		return e, false, nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return Effect{}, false, fmt.Errorf("encode effect: %w", err)
	}
	torn, err := endsTorn(f)
	if err != nil {
		return Effect{}, false, err
	}
	if torn {
		line = append([]byte{'\n'}, line...)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return Effect{}, false, fmt.Errorf("append effect: %w", err)
	}
	return e, true, f.Sync()
}

// Effects returns everything recorded, oldest first.
func (l *Ledger) Effects() ([]Effect, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	defer f.Close()
	return read(f)
}

// read parses the lines; a torn last line, left by a crash in the middle of a
// write, did not happen and is skipped.
func read(r io.Reader) ([]Effect, error) {
	var past []Effect
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var e Effect
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue
		}
		past = append(past, e)
	}
	return past, lines.Err()
}

// endsTorn reports whether the file's last line was cut off by a crash.
func endsTorn(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return last[0] != '\n', err
}
