package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// StillRunning takes the lock for an instant, so a try that finds it taken
// looks again before it gives up.
const (
	lockTries = 5
	lockPause = 20 * time.Millisecond
)

// errLocked says that somebody holds the lock of the effect.
var errLocked = errors.New("an earlier try of this effect is still running")

// lockPath names the lock file of an effect.
func (w *World) lockPath(effect string) (string, error) {
	if w.LockDir == "" {
		return "", errors.New("no folder for effect locks is set")
	}
	if effect == "" || strings.ContainsFunc(effect, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) {
		return "", fmt.Errorf("%q is not an effect id", effect)
	}
	return filepath.Join(w.LockDir, "effect-"+effect+".lock"), nil
}

// lockEffect takes the lock of one effect. The lock belongs to the open file:
// a child that inherits the descriptor keeps it for as long as it, or any of
// its children, lives (flock(2)), whatever becomes of this process.
func (w *World) lockEffect(effect string) (*os.File, error) {
	path, err := w.lockPath(effect)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.LockDir, 0o700); err != nil {
		return nil, fmt.Errorf("make lock folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open effect lock: %w", err)
	}
	for range lockTries {
		if err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, errLocked) {
			break
		}
		time.Sleep(lockPause) // somebody may only be looking
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Forget removes the lock file of an effect that has reached its end. It is
// never needed for correctness.
func (w *World) Forget(effect string) error {
	path, err := w.lockPath(effect)
	if err != nil {
		return err
	}
	if running, err := w.StillRunning(effect); running || err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove effect lock: %w", err)
	}
	return nil
}

// StillRunning reports whether a try of the effect still runs: a child that
// outlived its console, or a write that has not ended. No lock file: no.
func (w *World) StillRunning(effect string) (bool, error) {
	path, err := w.lockPath(effect)
	if err != nil {
		return false, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open effect lock: %w", err)
	}
	defer f.Close()
	err = flock(f, syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, errLocked) {
		return true, nil
	}
	return false, err
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		case err != nil:
			return fmt.Errorf("lock effect: %w", err)
		default:
			return nil
		}
	}
}
