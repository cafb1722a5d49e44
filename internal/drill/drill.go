// Package drill rehearses the end of the process: it runs a workflow with its
// targets replaced, ends it at every instant at which a process may die, lets
// it go on, and says what was doubled, lost or repeated.
//
// It guarantees that nothing is sent and that no folder but its own is written
// to. It must not know flags or how a report is printed.
package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"countersign/internal/engine"
	"countersign/internal/instance"
)

// Options say what is rehearsed.
type Options struct {
	Config   instance.Config            // folders of definitions, values for tools
	Workflow string                     // name
	Version  int                        // 0: the one in force
	Input    json.RawMessage            // nil: one made from the input's schema
	Answers  map[string]json.RawMessage // output by tool; others are made from the output's schema
	Dir      string                     // where the folders of the drill go; empty: the system's folder for temporary files
	Case     func(Case)                 // told of each case as it ends; may be nil
	Logger   *slog.Logger               // nil: nothing is logged
}

// Report is what a drill found.
type Report struct {
	Workflow   string   `json:"workflow"`
	Version    int      `json:"version"`
	Digest     string   `json:"digest"`
	Status     string   `json:"status"`      // how the run ends undisturbed
	Why        string   `json:"why"`         // unless it completes
	Effects    int      `json:"effects"`     // it makes
	NotReached []string `json:"not_reached"` // steps that the answers lead past
	Cases      []Case   `json:"cases"`
	Findings   int      `json:"findings"`
}

// Sound reports whether the undisturbed run came to an end that its workflow
// means. Of one that failed or got stuck the drill says little.
func (r Report) Sound() bool {
	return slices.Contains([]string{engine.Completed, engine.RunRejected, engine.RunExpired}, r.Status)
}

// Case is one crash and what followed.
type Case struct {
	Window   string   `json:"window"`
	Step     string   `json:"step"`
	Pass     int      `json:"pass"`
	Effects  int      `json:"effects"`  // at the target, in the end
	Repeated int      `json:"repeated"` // reads whose answer was there, not recorded, and asked for again
	People   int      `json:"people"`   // times that only a person could say what happened
	Status   string   `json:"status"`   // how the run ended
	Findings []string `json:"findings"` // what must not be; empty: all is well
}

// Run drills a workflow. An error means that the drill could not be held, not
// that it found something.
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	dir, err := os.MkdirTemp(o.Dir, "countersign-drill-")
	if err != nil {
		return Report{}, fmt.Errorf("make the drill's folder: %w", err)
	}
	defer os.RemoveAll(dir)
	d := &drill{o: o, dir: dir}
	if err := d.prepare(ctx); err != nil {
		return Report{}, err
	}
	return d.all(ctx)
}

// drill is one call of Run.
type drill struct {
	o      Options
	dir    string
	people people
	report Report
	steps  []string // of the workflow, in order
	input  json.RawMessage
}

// point is an instant that the undisturbed run passed.
type point struct {
	window, path string
	pass         int
}

func (d *drill) all(ctx context.Context) (Report, error) {
	calm, err := d.rehearse(ctx, point{})
	if err != nil {
		return Report{}, err
	}
	r := &d.report
	r.Status, r.Effects, r.NotReached, r.Cases = calm.run.Status, total(calm.effects), d.notReached(calm.passed), []Case{}
	if calm.run.Error != nil {
		r.Why = calm.run.Error.Message
	}
	if len(calm.passed) == 0 {
		return *r, errors.New("the run passed no instant at which a process could die; it was not driven")
	}
	for _, at := range calm.passed {
		again, err := d.rehearse(ctx, at)
		if err != nil {
			return *r, fmt.Errorf("drill %s of %s: %w", at.window, at.path, err)
		}
		c := compare(at, calm, again)
		r.Cases = append(r.Cases, c)
		r.Findings += len(c.Findings)
		if d.o.Case != nil {
			d.o.Case(c)
		}
	}
	return *r, nil
}

// notReached lists the steps that the undisturbed run did not come to.
func (d *drill) notReached(passed []point) []string {
	left := []string{}
	for _, path := range d.steps {
		if !slices.ContainsFunc(passed, func(p point) bool { return p.path == path }) {
			left = append(left, path)
		}
	}
	return left
}

// compare says what a crash changed that it must not change.
func compare(at point, calm, again outcome) Case {
	c := Case{Window: at.window, Step: at.path, Pass: at.pass, Effects: total(again.effects), People: again.people, Status: again.run.Status, Findings: []string{}}
	find := func(format string, args ...any) { c.Findings = append(c.Findings, fmt.Sprintf(format, args...)) }
	if !again.crashed {
		find("the run did not come to this instant again")
	}
	for key, n := range again.effects {
		if n > 1 {
			find("the effect with the key %s happened %d times", key, n)
		}
	}
	if c.Effects < total(calm.effects) && again.run.Status == calm.run.Status {
		find("%d effects happened, undisturbed there are %d", c.Effects, total(calm.effects))
	}
	c.Repeated = total(again.reads) - total(calm.reads)
	for _, path := range again.redone {
		find("step %s had finished and was done again", path)
	}
	if again.run.Status != calm.run.Status {
		find("the run ended %s, undisturbed it ends %s%s", again.run.Status, calm.run.Status, because(again.run))
	}
	if again.run.Status == calm.run.Status && !bytes.Equal(again.output(), calm.output()) {
		find("the output differs from the undisturbed one")
	}
	if again.traces > 1 {
		find("the run changed its trace")
	}
	if again.audit != "" {
		find("the audit log does not verify: %s", again.audit)
	}
	return c
}

func because(r engine.Run) string {
	if r.Error == nil {
		return ""
	}
	return " (" + r.Error.Message + ")"
}

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// folder is a folder of the drill.
func (d *drill) folder(name string) string { return filepath.Join(d.dir, name) }
