package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"text/tabwriter"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/instance"
)

// runCmd is everything about runs.
type runCmd struct {
	Start   runStartCmd   `cmd:"" help:"Start a run." example:"console run start weekly-report --data ./data --key demo-001"`
	List    runListCmd    `cmd:"" help:"List runs, newest first." example:"console run list --status blocked --data ./data"`
	Show    runShowCmd    `cmd:"" help:"Show one run with its steps, approvals, effects, and everything that happened, in order." example:"console run show key:demo-001 --data ./data"`
	Resume  runResumeCmd  `cmd:"" help:"Continue a run." example:"console run resume key:demo-001 --data ./data"`
	Answer  runAnswerCmd  `cmd:"" help:"Answer what a run asks, as a person who may." example:"console run answer key:demo-001 --step details --set amount=1500 --data ./data --as ana@example.org"`
	Cancel  runCancelCmd  `cmd:"" help:"Cancel a run." example:"console run cancel run_… --data ./data --reason 'no longer needed'"`
	Correct runCorrectCmd `cmd:"" help:"Propose what corrects a run that has ended." example:"console run correct run_… --data ./data --reason 'sent to the wrong customer'"`
	Replay  runReplayCmd  `cmd:"" help:"Walk a run's record again and say where this program would do something else. Changes nothing." example:"console run replay key:demo-001 --data ./data"`
	Migrate runMigrateCmd `cmd:"" help:"Have an open run go on in another version of its workflow." example:"console run migrate key:demo-001 --to 3 --dry-run --data ./data"`
	Bundle  runBundleCmd  `cmd:"" help:"Write everything about a run that has ended into one file that can be checked anywhere." example:"console run bundle key:demo-001 --out run.jsonl --data ./data"`
	Erase   runEraseCmd   `cmd:"" help:"Destroy the sensitive values of a run that has ended." example:"console run erase run_… --data ./data --reason 'asked for by the customer'"`
}

// crashing is the rehearsal of a crash.
type crashing struct {
	CrashAt string `help:"End this process at WINDOW:STEP[@PASS] at once, with status 75: a rehearsal, with --data only. Windows are listed in docs/operations.md." placeholder:"WINDOW:STEP"`
}

// hook returns the function the engine calls at every window, or nil.
func (c crashing) hook(e env) (func(window, path string, pass int), error) {
	if c.CrashAt == "" {
		return nil, nil
	}
	at, err := engine.ParseCrash(c.CrashAt)
	if err != nil {
		return nil, err
	}
	return func(window, path string, pass int) {
		if at.Matches(window, path, pass) {
			fmt.Fprintf(e.err, "rehearsed crash at %s\n", c.CrashAt)
			os.Exit(exitCrash) // at once: no deferred call, no cleanup
		}
	}, nil
}

type runStartCmd struct {
	place
	crashing
	Workflow string `arg:"" help:"Name of the workflow."`
	Input    string `help:"The input: JSON, or a file of JSON." default:"{}"`
	Key      string `help:"A key of your own: the same key and input give the run that exists."`
	JSON     bool   `help:"As JSON."`
}

func (c runStartCmd) Run(ctx context.Context, e env) error {
	input, err := jsonOrFile(c.Input)
	if err != nil {
		return err
	}
	return c.act(ctx, e, c.crashing, c.JSON,
		func(h *client) (run engine.Run, err error) {
			err = h.call(ctx, "POST", "/runs", map[string]any{"workflow": c.Workflow, "input": input, "run_key": c.Key}, &run)
			return run, err
		},
		func(i *instance.Instance) (engine.Run, error) {
			run, created, err := i.Desk.StartRun(ctx, operator(), desk.StartRun{Workflow: c.Workflow, Input: input, Key: c.Key})
			if err != nil || !created {
				return run, err
			}
			return i.Desk.Drive(ctx, operator(), string(run.ID), -1)
		})
}

// jsonOrFile reads an input given as JSON or as the name of a file.
func jsonOrFile(s string) (json.RawMessage, error) {
	if strings.HasPrefix(strings.TrimSpace(s), "{") {
		return json.RawMessage(s), nil
	}
	raw, err := os.ReadFile(s)
	if err != nil {
		return nil, fmt.Errorf("it is neither JSON nor a readable file: %w", err)
	}
	return raw, nil
}

// act does something with a run on a server, or on a data folder in this
// process, prints the run and ends with the status its state has.
func (p place) act(ctx context.Context, e env, crash crashing, asJSON bool, remote func(*client) (engine.Run, error), local func(*instance.Instance) (engine.Run, error)) error {
	if err := p.check(); err != nil {
		return err
	}
	hook, err := crash.hook(e)
	if err != nil {
		return err
	}
	var run engine.Run
	if p.Server != "" {
		if hook != nil {
			return fmt.Errorf("--crash-at is only for --data: it ends this process")
		}
		run, err = remote(p.client())
	} else {
		var i *instance.Instance
		if i, err = p.folder(ctx, true, hook, quiet(e)); err != nil {
			return err
		}
		defer i.Close()
		run, err = local(i)
	}
	if err != nil {
		return err
	}
	if err := showRun(e.out, run, asJSON); err != nil {
		return err
	}
	return ended(run)
}

// quiet logs warnings and errors only.
func quiet(e env) *slog.Logger { return logging{}.logger(e, slog.LevelWarn) }

// ended is the exit status of a run's state.
func ended(run engine.Run) error {
	switch {
	case run.Status == engine.Blocked:
		return exit(exitBlocked)
	case engine.Final(run.Status) && run.Status != engine.Completed:
		return exit(exitEnded)
	}
	return nil
}

// showRun prints a run in a few lines.
func showRun(w io.Writer, run engine.Run, asJSON bool) error {
	if asJSON {
		return printJSON(w, run)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s v%d  %s  version %d\n", run.ID, run.Workflow, run.WorkflowVersion, run.Status, run.Version)
	if run.Key != "" {
		fmt.Fprintf(&b, "key: %s\n", run.Key)
	}
	for _, f := range run.WaitingFor {
		fmt.Fprintf(&b, "waits at %s for %s", f.Path, f.Kind)
		if f.Subject != "" {
			fmt.Fprintf(&b, " %s", f.Subject)
		}
		if !f.Until.IsZero() {
			fmt.Fprintf(&b, " until %s", f.Until.Format("2006-01-02 15:04:05 MST"))
		}
		if f.Who != "" {
			fmt.Fprintf(&b, "\n  who:  %s", f.Who)
		}
		fmt.Fprintf(&b, "\n  next: %s\n", f.NextAction)
	}
	if run.Error != nil {
		fmt.Fprintf(&b, "why: %s\n", run.Error.Message)
	}
	if len(run.Output) > 0 {
		fmt.Fprintf(&b, "output: %s\n", run.Output)
	}
	_, err := io.WriteString(w, printable(b.String()))
	return err
}

type runListCmd struct {
	place
	Status   string `help:"Only runs of this status."`
	Workflow string `help:"Only runs of this workflow."`
	Limit    int    `help:"How many, at most 200." default:"50"`
	JSON     bool   `help:"As JSON."`
}

func (c runListCmd) Run(ctx context.Context, e env) error {
	var page desk.Page[engine.Run]
	err := c.beside(ctx, e,
		func(h *client) error {
			q := url.Values{"limit": {strconv.Itoa(c.Limit)}}
			if c.Status != "" {
				q.Set("status", c.Status)
			}
			if c.Workflow != "" {
				q.Set("workflow", c.Workflow)
			}
			return h.call(ctx, "GET", "/runs?"+q.Encode(), nil, &page)
		},
		func(i *instance.Instance) (err error) {
			page, err = i.Desk.Runs(ctx, operator(), desk.RunQuery{Status: c.Status, Workflow: c.Workflow, Limit: c.Limit})
			return err
		})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, page)
	}
	return table(e.out, "RUN\tWORKFLOW\tSTATUS\tSTEP\tKEY\tUPDATED", page.Items, func(r engine.Run) string {
		return fmt.Sprintf("%s\t%s v%d\t%s\t%s\t%s\t%s", r.ID, r.Workflow, r.WorkflowVersion, r.Status, r.Step, r.Key, r.UpdatedAt.Format("2006-01-02 15:04:05"))
	})
}

// beside does something that drives no run, on a server or on a data folder
// beside whoever drives it.
func (p place) beside(ctx context.Context, e env, remote func(*client) error, local func(*instance.Instance) error) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.Server != "" {
		return remote(p.client())
	}
	i, err := p.folder(ctx, false, nil, quiet(e))
	if err != nil {
		return err
	}
	defer i.Close()
	return local(i)
}

// table prints rows in columns.
func table[T any](w io.Writer, header string, items []T, row func(T) string) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, header)
	for _, item := range items {
		fmt.Fprintln(t, strings.ReplaceAll(printable(row(item)), "\n", " "))
	}
	return t.Flush()
}

type runResumeCmd struct {
	place
	crashing
	ID       string `arg:"" optional:"" help:"Run id, or key:K."`
	Restored bool   `help:"Every run that stopped because a backup was restored, in place of one."`
	Expect   string `help:"Version the run must be at, so that an old look at it cannot undo a newer state." default:"current"`
	JSON     bool   `help:"As JSON."`
}

func (c runResumeCmd) Run(ctx context.Context, e env) error {
	expected, err := expectedVersion(c.Expect)
	if err != nil {
		return err
	}
	if c.Restored == (c.ID != "") {
		return errors.New("name one run, or --restored for every run that stopped because a backup was restored")
	}
	if c.Restored {
		return c.restored(ctx, e)
	}
	return c.act(ctx, e, c.crashing, c.JSON,
		func(h *client) (engine.Run, error) { return remoteResume(ctx, h, c.ID, expected) },
		func(i *instance.Instance) (engine.Run, error) { return i.Desk.Drive(ctx, operator(), c.ID, expected) })
}

// expectedVersion reads --expect: a version, or -1 for whatever it is.
func expectedVersion(expect string) (int64, error) {
	if expect == "current" {
		return -1, nil
	}
	n, err := strconv.ParseInt(expect, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("--expect is a version number or current, not %q", expect)
	}
	return n, nil
}

// seen is the expected version of the run at base, or the one it has now.
func seen(ctx context.Context, h *client, base string, expected int64) (int64, error) {
	if expected >= 0 {
		return expected, nil
	}
	var run engine.Run
	err := h.call(ctx, "GET", base, nil, &run)
	return run.Version, err
}

func remoteResume(ctx context.Context, h *client, id string, expected int64) (engine.Run, error) {
	base := path.Join("/runs", escape(id))
	expected, err := seen(ctx, h, base, expected)
	if err != nil {
		return engine.Run{}, err
	}
	var resumed engine.Resumed
	err = h.call(ctx, "POST", base+"/resume", map[string]any{"expected_version": expected}, &resumed)
	return resumed.Run, err
}

type runCancelCmd struct {
	place
	ID     string `arg:"" help:"Run id, or key:K."`
	Reason string `help:"Why." required:""`
	JSON   bool   `help:"As JSON."`
}

func (c runCancelCmd) Run(ctx context.Context, e env) error {
	err := c.act(ctx, e, crashing{}, c.JSON,
		func(h *client) (run engine.Run, err error) {
			err = h.call(ctx, "POST", path.Join("/runs", escape(c.ID), "cancel"), map[string]any{"reason": c.Reason}, &run)
			return run, err
		},
		func(i *instance.Instance) (engine.Run, error) { return i.Desk.Cancel(ctx, operator(), c.ID, c.Reason) })
	if code, ok := err.(exit); ok && code == exitEnded {
		return nil // cancelled is what was asked for
	}
	return err
}

type runEraseCmd struct {
	place
	ID     string `arg:"" help:"Run id, or key:K."`
	Reason string `help:"Why." required:""`
}

// Help says what stays.
func (runEraseCmd) Help() string {
	return "Values that definitions mark sensitive are destroyed with their key, in the database and in its write-ahead log, and again\n" +
		"when the database is put back from a backup (the list vault.erased says which). Digests and log stay and still verify.\n" +
		"Values that no definition marks stay, too. Copies of the database made before keep theirs."
}

func (c runEraseCmd) Run(ctx context.Context, e env) error {
	var out desk.Erased
	err := c.beside(ctx, e,
		func(h *client) error {
			return h.call(ctx, "POST", path.Join("/runs", escape(c.ID), "erase"), map[string]any{"reason": c.Reason}, &out)
		},
		func(i *instance.Instance) (err error) {
			out, err = i.Desk.Erase(ctx, operator(), c.ID, c.Reason)
			return err
		})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s: %d sensitive values destroyed.\n", out.Run, out.Values)
	return err
}
