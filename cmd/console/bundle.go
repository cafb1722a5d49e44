package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"countersign/internal/audit/receipt"
)

// runBundleCmd writes everything about a run that has ended into one file.
type runBundleCmd struct {
	folderOnly
	ID  string `arg:"" help:"Run id, or key:K."`
	Out string `help:"File to write; it must not exist." required:"" type:"path"`
}

// Help says what is in it.
func (runBundleCmd) Help() string {
	return "The file is JSON Lines: the run, its steps, checkpoints, effects with what was sent, questions, approvals with subjects and decisions, audit\n" +
		"entries, and a receipt of each approval; the last line has the digest of all before. Sensitive values stand in it as commitments.\n" +
		"console audit check-bundle checks it anywhere. Nothing is removed from the data folder."
}

func (c runBundleCmd) Run(ctx context.Context, e env) error {
	i, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	err = writeWhole(c.Out, func(w *bufio.Writer) error { return i.Desk.Bundle(ctx, operator(), c.ID, w) })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s written\n", c.Out)
	return err
}

// writeWhole writes a file that has its name only once it is whole and durable;
// one that is there already stays.
func writeWhole(path string, write func(*bufio.Writer) error) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("the file %s exists already and was left as it is; name another one", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".partial-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	w := bufio.NewWriter(f)
	if err := write(w); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(w.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// checkBundleCmd checks a bundle with the public key alone.
type checkBundleCmd struct {
	File string `arg:"" help:"The bundle." type:"path"`
	Key  string `help:"The public key, or a file of it such as audit.pub." required:""`
}

func (c checkBundleCmd) Run(e env) error {
	key, err := publicKey(c.Key)
	if err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	report, err := receipt.CheckBundle(f, key)
	switch {
	case errors.Is(err, receipt.ErrKey):
		return fmt.Errorf("the bundle was not checked: %w; give the file audit.pub of the console, or what it holds", err)
	case err != nil:
		return fmt.Errorf("the bundle does NOT hold: %w", err)
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(report.Lines)) {
		parts = append(parts, fmt.Sprintf("%d %s", report.Lines[kind], kind))
	}
	fmt.Fprintf(e.out, "the bundle of %s holds: %s\n", printable(report.Run), printable(strings.Join(parts, ", ")))
	for _, r := range report.Receipts {
		fmt.Fprintf(e.out, "  receipt of %s holds\n", printable(r.Approval))
	}
	return nil
}
