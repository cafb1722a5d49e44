package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// FileBytesMax is the longest content a file tool writes, and the longest file
// it replaces or compares.
const FileBytesMax = 8 << 20

// absent is the pin of a file that does not exist.
const absent = "absent"

// errPinChanged says that the file is not the one whose replacement was approved.
var errPinChanged = errors.New("the file was changed since this was approved; nothing was written")

// target is one file below a root that is to hold content.
type target struct {
	root    string
	path    string
	content []byte
	effect  string
}

func (t target) digest() string { return digestOf(t.content) }

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// temp is where content is written before it takes the target's place: beside
// it, so that the change is one rename, and named by the effect, so that what
// a crash leaves behind is found again.
func (t target) temp() string { return path.Join(path.Dir(t.path), tempPrefix+t.effect+".tmp") }

// openRoot opens the root; os.Root keeps every later name below it, symbolic
// links included.
func openRoot(dir string) (*os.Root, error) {
	if err := checkRoot(dir); err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open root folder: %w", err)
	}
	return r, nil
}

// held is what a file holds now.
type held struct {
	exists  bool
	digest  string
	content []byte
}

// pin is what a later write compares: the digest or absent.
func (h held) pin() string {
	if !h.exists {
		return absent
	}
	return h.digest
}

// holds reads the file. A folder, device or link in its place is an error: it
// cannot be replaced by a file.
func holds(r *os.Root, name string) (held, error) {
	st, err := r.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return held{}, nil
	}
	if err != nil {
		return held{}, fmt.Errorf("look at file: %w", err)
	}
	if !st.Mode().IsRegular() {
		return held{}, fmt.Errorf("%q is not a plain file", name)
	}
	f, err := r.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return held{}, nil
	}
	if err != nil {
		return held{}, fmt.Errorf("open file: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, FileBytesMax+1))
	if err != nil {
		return held{}, fmt.Errorf("read file: %w", err)
	}
	if len(b) > FileBytesMax {
		return held{}, fmt.Errorf("%q is longer than %d bytes", name, FileBytesMax)
	}
	return held{exists: true, digest: digestOf(b), content: b}, nil
}

// put makes the target hold content if it still holds what pin names. It
// reports whether the file may have been changed when it failed. Writing what
// is already there is success.
func (t target) put(ctx context.Context, pin string) (touched bool, err error) {
	r, err := openRoot(t.root)
	if err != nil {
		return false, err
	}
	defer r.Close()
	if err := makeParents(r, path.Dir(t.path)); err != nil {
		return false, err
	}
	if err := t.writeTemp(r); err != nil {
		return false, err
	}
	defer r.Remove(t.temp()) // gone already after a rename
	now, err := holds(r, t.path)
	switch {
	case err != nil:
		return false, err
	case now.exists && now.digest == t.digest():
		return true, syncFolder(r, path.Dir(t.path))
	case now.pin() != pin:
		return false, errPinChanged
	case ctx.Err() != nil:
		return false, fmt.Errorf("the time for writing ran out: %w", ctx.Err())
	}
	return t.swap(r, now)
}

// swap puts the temporary file in place. A file that must be new is linked, so
// that one which appeared in between is not overwritten.
func (t target) swap(r *os.Root, now held) (touched bool, err error) {
	if !now.exists {
		err = r.Link(t.temp(), t.path)
		if errors.Is(err, fs.ErrExist) {
			return false, errPinChanged
		}
	}
	if now.exists || err != nil { // err: a file system without hard links
		if err := r.Rename(t.temp(), t.path); err != nil {
			return true, fmt.Errorf("put file in place: %w", err)
		}
	}
	return true, syncFolder(r, path.Dir(t.path))
}

func (t target) writeTemp(r *os.Root) error {
	if err := r.Remove(t.temp()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what an earlier try left: %w", err)
	}
	f, err := r.OpenFile(t.temp(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("make temporary file: %w", err)
	}
	_, err = f.Write(t.content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		_ = r.Remove(t.temp())
		return fmt.Errorf("write temporary file: %w", err)
	}
	return nil
}

// clean removes the temporary file of a try that crashed.
func (t target) clean(r *os.Root) error {
	if err := r.Remove(t.temp()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what an earlier try left: %w", err)
	}
	return nil
}

// makeParents makes the folders down to dir, each durable before the next.
func makeParents(r *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if st, err := r.Stat(dir); err == nil && st.IsDir() {
		return nil
	}
	up := path.Dir(dir)
	if err := makeParents(r, up); err != nil {
		return err
	}
	if err := r.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make folder: %w", err)
	}
	return syncFolder(r, up)
}

// syncFolder makes the names in a folder durable.
func syncFolder(r *os.Root, dir string) error {
	d, err := r.Open(dir)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}
