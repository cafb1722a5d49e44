package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"countersign/internal/problem"
)

// Files of the folder lock. The first is only locked, never read or removed:
// removing it would let two processes lock two files of the same name.
const (
	lockFile   = "lock"
	holderFile = "lock.json"
	epochFile  = "epoch"
)

// FolderLock is held by the only process that drives runs from a data folder.
// The system drops it when the process ends, however it ends.
type FolderLock struct {
	dir   string
	lock  *flock.Flock
	epoch int64
}

// holder is what the lock's owner leaves for others to read.
type holder struct {
	Holder string    `json:"holder"`
	Host   string    `json:"host"`
	PID    int       `json:"pid"`
	Since  time.Time `json:"since"`
}

// HeldError says who holds the folder. As a problem it is a conflict with the
// code folder_held.
type HeldError struct {
	Dir    string
	Holder string // what the holder said of itself, "" if that cannot be read
	Host   string
	PID    int
	Since  time.Time
}

// Error names the holder and what to do.
func (e *HeldError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("the folder %s is in use by another process; stop that one first", e.Dir)
	}
	return fmt.Sprintf("the folder %s is in use by %s (process %d on %s, since %s); stop that one first",
		e.Dir, e.Holder, e.PID, e.Host, e.Since.Format(time.RFC3339))
}

// Unwrap makes it a problem that may be shown.
func (e *HeldError) Unwrap() error {
	return problem.New(problem.Conflict, "folder_held", "%s.", e.Error())
}

// AcquireFolder takes the folder's lock for this process, without waiting,
// and raises the boot epoch durably. It returns *HeldError while another
// process has it. holder says who we are, for others to read.
func AcquireFolder(dir string, holder string) (*FolderLock, error) {
	l := &FolderLock{dir: dir, lock: flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))}
	got, err := l.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock folder %s: %w", dir, err)
	}
	if !got {
		return nil, heldBy(dir)
	}
	if err := l.enter(holder); err != nil {
		return nil, errors.Join(fmt.Errorf("lock folder %s: %w", dir, err), l.lock.Unlock())
	}
	return l, nil
}

func (l *FolderLock) enter(name string) error {
	last, err := readEpoch(l.dir)
	if err != nil {
		return err
	}
	l.epoch = last + 1
	if err := writeDurably(filepath.Join(l.dir, epochFile), []byte(strconv.FormatInt(l.epoch, 10)+"\n")); err != nil {
		return err
	}
	host, _ := os.Hostname()
	text, err := json.Marshal(holder{Holder: name, Host: host, PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	return writeDurably(filepath.Join(l.dir, holderFile), append(text, '\n'))
}

// readEpoch returns the last epoch, 0 for a folder never locked. A damaged
// file is an error: starting again at one would let old holders back in.
func readEpoch(dir string) (int64, error) {
	path := filepath.Join(dir, epochFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s must hold one whole number above zero but holds %.40q; write a number higher than any epoch used before", path, text)
	}
	return n, nil
}

// heldBy reads who has the lock. The file may be missing or from the holder
// before, for the instant between taking the lock and saying so.
func heldBy(dir string) *HeldError {
	var h holder
	if text, err := os.ReadFile(filepath.Join(dir, holderFile)); err == nil {
		_ = json.Unmarshal(text, &h)
	}
	return &HeldError{Dir: dir, Holder: h.Holder, Host: h.Host, PID: h.PID, Since: h.Since}
}

// Epoch grows by one each time the folder is locked; it tells this boot of
// the engine from all earlier ones.
func (l *FolderLock) Epoch() int64 { return l.epoch }

// Release gives the lock up. It may be called twice.
func (l *FolderLock) Release() error {
	if !l.lock.Locked() {
		return nil
	}
	err := os.Remove(filepath.Join(l.dir, holderFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.lock.Unlock())
}
