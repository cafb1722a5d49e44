package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"countersign/internal/audit"
	"countersign/internal/desk"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/vault"
)

// Names inside the data folder while a backup is put back.
const (
	stagingFolder = "restoring"    // the backup is made ready here
	swapFile      = "restore.swap" // once it is there the restore has happened, and whoever opens the folder finishes it
)

// Restoring says which backup is put back and where.
type Restoring struct {
	Dir    string
	File   string
	Config Config
	Logger *slog.Logger
	At     func(instant string) // tests only: told of every instant a process may die at
}

// Restored is what came of it.
type Restored struct {
	Runs     int    // that stopped, until a person resumes them
	Replaced string // where the database is that was there before; empty if there was none
}

func (r Restoring) at(instant string) {
	if r.At != nil {
		r.At(instant)
	}
}

// Restore puts a backup in place of the folder's database, as a new epoch. The
// backup is checked, made ready apart and only then swapped in: a process that
// dies at any instant leaves the folder as it was, or restored. The database
// that was there is kept beside it. A folder that a server drives gives a
// *store.HeldError.
func Restore(ctx context.Context, r Restoring) (out Restored, err error) {
	lock, err := store.AcquireFolder(r.Dir, "console restore")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := finishSwap(r.Dir, r.at); err != nil {
		return out, err
	}
	if out.Runs, err = r.prepare(ctx); err != nil {
		return out, errors.Join(err, os.RemoveAll(r.staging()))
	}
	r.at("ready")
	if out.Replaced, err = keepReplaced(r.Dir); err != nil {
		return out, errors.Join(err, os.RemoveAll(r.staging()))
	}
	r.at("kept")
	if err := writeSwap(r.Dir, out.Replaced); err != nil {
		return out, err
	}
	r.at("decided")
	return out, finishSwap(r.Dir, r.at)
}

func (r Restoring) staging() string { return filepath.Join(r.Dir, stagingFolder) }

// prepare makes a folder of the backup and the keys, checks it, and begins the
// new epoch in it.
func (r Restoring) prepare(ctx context.Context) (runs int, err error) {
	if err := r.gather(ctx); err != nil {
		return 0, err
	}
	r.at("gathered")
	i, err := Open(ctx, Options{Dir: r.staging(), Config: r.Config, Logger: r.Logger})
	if err != nil {
		return 0, fmt.Errorf("open the backup: %w", err)
	}
	runs, err = r.begin(ctx, i)
	if err = errors.Join(err, i.Close()); err != nil {
		return 0, err
	}
	database := filepath.Join(r.staging(), DatabaseFile)
	if info, err := os.Stat(database + "-wal"); err == nil && info.Size() > 0 {
		return 0, fmt.Errorf("the restored database still has a write-ahead log; another process has %s open", database)
	}
	return runs, syncPath(database)
}

// begin checks the opened backup and begins the new epoch.
func (r Restoring) begin(ctx context.Context, i *Instance) (runs int, err error) {
	if err := i.DB.CheckIntegrity(ctx); err != nil {
		return 0, err
	}
	report, err := i.Log.Verify(ctx, nil)
	if err != nil {
		return 0, err
	}
	if !report.OK {
		f := report.Findings[0]
		return 0, problem.New(problem.Conflict, "backup_not_proven", "The audit log of the backup does not verify with the keys of this folder: entry %d of %q: %s. Nothing was changed. Take another backup; or, if the audit key was replaced since, put audit.key and audit.pub of that time here first.", f.Seq, f.Tenant, f.What)
	}
	kept, err := audit.ReadHeadFile(filepath.Join(r.Dir, audit.HeadFile))
	if err != nil {
		return 0, problem.New(problem.Conflict, "heads_unreadable", "%s in %s cannot be read (%v). Put a copy of it there, or move it away; then restore.", audit.HeadFile, r.Dir, err)
	}
	return i.Desk.Restored(ctx, desk.Terminal(), kept)
}

// gather copies the backup and the keys into a new folder.
func (r Restoring) gather(ctx context.Context) error {
	if err := store.CheckBackup(ctx, r.File); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(r.staging()), os.Mkdir(r.staging(), 0o700)); err != nil {
		return fmt.Errorf("make a folder for the backup: %w", err)
	}
	for _, name := range []string{audit.KeyFile, audit.PublicFile, vault.KeyFile} {
		err := copyFile(filepath.Join(r.Dir, name), filepath.Join(r.staging(), name))
		if errors.Is(err, fs.ErrNotExist) {
			return problem.New(problem.Conflict, "key_missing", "%s is not in %s. Put %s, %s and %s there from where you keep them, then restore.", name, r.Dir, audit.KeyFile, audit.PublicFile, vault.KeyFile)
		}
		if err != nil {
			return err
		}
	}
	err := copyFile(filepath.Join(r.Dir, vault.ErasedFile), filepath.Join(r.staging(), vault.ErasedFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return copyFile(r.File, filepath.Join(r.staging(), DatabaseFile))
}

// stampForm names what was replaced, to the second in UTC.
const stampForm = "20060102T150405Z"

// freeSuffix is the stamp, with a number where one second saw two restores.
func freeSuffix(database string) string {
	stamp := ".replaced-" + time.Now().UTC().Format(stampForm)
	suffix := stamp
	for n := 2; ; n++ {
		if _, err := os.Lstat(database + suffix); err != nil {
			return suffix
		}
		suffix = fmt.Sprintf("%s.%d", stamp, n)
	}
}

// keepReplaced gives the present database, its log and its heads a second,
// dated name; it returns that of the database.
func keepReplaced(dir string) (string, error) {
	database := filepath.Join(dir, DatabaseFile)
	suffix := freeSuffix(database)
	for from, to := range map[string]string{database: database + suffix, database + "-wal": database + suffix + "-wal",
		filepath.Join(dir, audit.HeadFile): filepath.Join(dir, audit.HeadFile) + suffix} {
		err := os.Link(from, to)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = copyFile(from, to) // a file system without links
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("keep what is replaced: %w", err)
		}
	}
	if _, err := os.Lstat(database + suffix); err != nil {
		return "", syncPath(dir)
	}
	return database + suffix, syncPath(dir)
}

// swap is what swapFile holds, for whoever finds it.
type swap struct {
	Replaced string    `json:"replaced"`
	At       time.Time `json:"at"`
}

// writeSwap is the instant at which the restore happens.
func writeSwap(dir, replaced string) error {
	text, err := json.Marshal(swap{filepath.Base(replaced), time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, stagingFolder, swapFile)
	if err := os.WriteFile(temp, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("decide the restore: %w", err)
	}
	if err := errors.Join(syncPath(temp), syncPath(filepath.Dir(temp))); err != nil {
		return fmt.Errorf("decide the restore: %w", err)
	}
	if err := os.Rename(temp, filepath.Join(dir, swapFile)); err != nil {
		return fmt.Errorf("decide the restore: %w", err)
	}
	return syncPath(dir)
}

// finishSwap does what is left of a restore that was decided; nothing where
// none was. The caller holds the folder's lock. It may be called again after a
// death at any instant.
func finishSwap(dir string, at func(string)) error {
	if !swapping(dir) {
		return nil
	}
	staged, database := filepath.Join(dir, stagingFolder), filepath.Join(dir, DatabaseFile)
	if _, err := os.Lstat(filepath.Join(staged, DatabaseFile)); err == nil {
		for _, side := range []string{"-wal", "-shm"} { // of the database that is replaced
			if err := os.RemoveAll(database + side); err != nil {
				return fmt.Errorf("finish the restore: %w", err)
			}
		}
		at("cleared")
		if err := os.Rename(filepath.Join(staged, DatabaseFile), database); err != nil {
			return fmt.Errorf("finish the restore: %w", err)
		}
		if err := syncPath(dir); err != nil {
			return err
		}
	}
	at("swapped")
	err := os.Rename(filepath.Join(staged, audit.HeadFile), filepath.Join(dir, audit.HeadFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("finish the restore: %w", err)
	}
	at("headed")
	if err := errors.Join(syncPath(dir), os.Remove(filepath.Join(dir, swapFile)), syncPath(dir)); err != nil {
		return fmt.Errorf("finish the restore: %w", err)
	}
	at("finished")
	return os.RemoveAll(staged)
}

func swapping(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, swapFile))
	return err == nil
}

// settleSwap finishes a restore that a death cut short, before the folder is
// opened; held says that the caller has its lock.
func settleSwap(dir string, held bool) error {
	if !swapping(dir) {
		return nil
	}
	if !held {
		lock, err := store.AcquireFolder(dir, "a console command that finishes a restore")
		if err != nil {
			return fmt.Errorf("a restore is under way: %w", err)
		}
		defer lock.Release()
	}
	return finishSwap(dir, func(string) {})
}

// copyFile copies durably to a file that is not there yet.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// syncPath makes a file, or the names in a folder, durable.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
