package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// What a child gets beyond the declared environment: nothing of the console's
// own, a fixed search path and a neutral locale.
const (
	basePath   = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	baseLocale = "C.UTF-8"
)

// Limits of a child.
const (
	OutputBytesMax = 1 << 20 // of standard output and of standard error
	stderrTailMax  = 2 << 10 // of standard error that a message shows
	// GraceDefault is the time between asking a group to end and killing it.
	GraceDefault = 2 * time.Second
	pipeWait     = 500 * time.Millisecond // after the child ended, for others that hold its output
	groupPoll    = 20 * time.Millisecond
)

// process is a child to be run.
type process struct {
	argv  []string
	env   []string // declared, already with values
	dir   string
	stdin []byte
	lock  *os.File // inherited by the child; may be nil
}

// ended is how a child ended.
type ended struct {
	startErr error // it never ran
	exit     int   // -1: killed by a signal
	signal   string
	timedOut bool
	stdout   []byte
	stderr   []byte
	cut      bool // output was longer than the limit, or somebody still held it
}

// run starts the child in its own process group and waits for it. When ctx
// ends, the whole group is asked to end and then killed.
func (w *World) run(ctx context.Context, p process) ended {
	path, err := lookup(p.argv[0])
	if err != nil {
		return ended{startErr: err}
	}
	out, errs := &capped{max: OutputBytesMax}, &capped{max: OutputBytesMax}
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = p.argv
	cmd.Env = append([]string{"PATH=" + basePath, "LANG=" + baseLocale}, p.env...)
	cmd.Dir = p.dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(p.stdin), out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.lock != nil {
		cmd.ExtraFiles = []*os.File{p.lock}
	}
	grace := w.Grace
	if grace == 0 {
		grace = GraceDefault
	}
	var gone chan struct{} // set when ctx ended first; closed when the group is gone
	cmd.Cancel = func() error {
		gone = make(chan struct{})
		err := signalGroup(cmd.Process.Pid, syscall.SIGTERM)
		go func() { defer close(gone); endGroup(cmd.Process.Pid, grace) }()
		return err
	}
	cmd.WaitDelay = grace + pipeWait
	if err := cmd.Start(); err != nil {
		return ended{startErr: err}
	}
	err = cmd.Wait()
	e := ended{exit: cmd.ProcessState.ExitCode(), stdout: out.kept.Bytes(), stderr: errs.kept.Bytes()}
	e.cut = out.cut || errors.Is(err, exec.ErrWaitDelay)
	if gone != nil {
		e.timedOut = true
		<-gone
	}
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		e.signal = st.Signal().String()
	}
	return e
}

// endGroup waits for the group to vanish and kills what is left after grace.
func endGroup(pgid int, grace time.Duration) {
	for end := time.Now().Add(grace); time.Now().Before(end); time.Sleep(groupPoll) {
		if errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) {
			return
		}
	}
	_ = signalGroup(pgid, syscall.SIGKILL)
}

func signalGroup(pgid int, sig syscall.Signal) error {
	if err := syscall.Kill(-pgid, sig); err != nil {
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return fmt.Errorf("signal process group: %w", err)
	}
	return nil
}

// lookup finds a program: an absolute path as it is, a bare name in the fixed
// search path. What this console's own PATH says plays no part.
func lookup(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, executable(name)
	}
	if strings.Contains(name, "/") || name == "" {
		return "", fmt.Errorf("%q is neither an absolute path nor a bare name", name)
	}
	for _, dir := range filepath.SplitList(basePath) {
		if path := filepath.Join(dir, name); executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%q is not in %s: %w", name, basePath, fs.ErrNotExist)
}

func executable(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("find program: %w", err)
	case st.IsDir() || st.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not a program: %w", path, fs.ErrPermission)
	}
	return nil
}

// capped keeps the first max bytes and swallows the rest, so that a child
// which talks too much is neither blocked nor believed.
type capped struct {
	kept bytes.Buffer // not embedded: its ReadFrom would go around the limit
	max  int
	cut  bool
}

func (c *capped) Write(p []byte) (int, error) {
	room := c.max - c.kept.Len()
	if room < len(p) {
		c.cut = true
		c.kept.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return c.kept.Write(p)
}

// tail is the end of standard error, for a message.
func tail(b []byte) string {
	if len(b) > stderrTailMax {
		b = b[len(b)-stderrTailMax:]
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "�"))
}
