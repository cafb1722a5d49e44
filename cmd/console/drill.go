package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"countersign/internal/desk"
	"countersign/internal/drill"
	"countersign/internal/instance"
)

type drillCmd struct {
	Workflow string `arg:"" help:"Name of the workflow."`
	Data     string `help:"Folder with workflows, tools and policies, and console.yaml if there is one. Only the database in it, if there is one, is told how the drill went." default:"." type:"path"`
	Version  int    `help:"Version of the workflow; the highest when it is left out."`
	Input    string `help:"The input: JSON, or a file of JSON. Without it one is made from the input's schema."`
	Answers  string `help:"What tools answer: a JSON object, or a file of one, from a tool's name to its output. Others answer what their output schema says."`
	JSON     bool   `help:"As JSON."`
}

// Help says what it proves.
func (drillCmd) Help() string {
	return "The workflow is run with its targets replaced, so that nothing is sent. It is ended at every instant at which a process may\n" +
		"die, and goes on; then the effects at the target are counted. Exit status 1 if anything was doubled, lost or repeated, or if\n" +
		"the run does not come to an end of its own even undisturbed."
}

func (c drillCmd) Run(ctx context.Context, e env) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	if !c.JSON {
		first := sync.OnceFunc(func() {
			fmt.Fprintf(e.out, "%-22s %-24s %7s %8s %6s  %s\n", "DIED AT", "STEP", "EFFECTS", "REPEATED", "PEOPLE", "THEN")
		})
		o.Case = func(x drill.Case) { first(); printCase(e, x) }
	}
	r, err := drill.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := c.keep(ctx, e, r); err != nil {
		fmt.Fprintf(e.err, "the drill was not recorded: %s\n", printable(err.Error()))
	}
	if c.JSON {
		err = printJSON(e.out, r)
	} else {
		printReport(e, r)
	}
	if err == nil && (r.Findings > 0 || !r.Sound()) {
		err = exit(exitFailed)
	}
	return err
}

// keep records the drill where the folder has a database, so that the
// workflow's page shows it.
func (c drillCmd) keep(ctx context.Context, e env, r drill.Report) error {
	if _, err := os.Stat(filepath.Join(c.Data, instance.DatabaseFile)); err != nil {
		return nil
	}
	i, err := folderOnly{Data: c.Data}.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	return i.Desk.RecordDrill(ctx, operator(), r.Digest, desk.Drill{Cases: len(r.Cases), Findings: r.Findings, Status: r.Status})
}

func (c drillCmd) options() (o drill.Options, err error) {
	if _, err := os.Stat(c.Data); err != nil {
		return o, fmt.Errorf("there is no folder %s", c.Data)
	}
	if o.Config, err = instance.LoadConfig(c.Data, ""); err != nil {
		return o, err
	}
	o.Config.Metrics, o.Config.OTLP = "", "" // a rehearsal is nobody's traffic
	o.Workflow, o.Version = c.Workflow, c.Version
	if c.Input != "" {
		if o.Input, err = jsonOrFile(c.Input); err != nil {
			return o, err
		}
	}
	if c.Answers == "" {
		return o, nil
	}
	answers, err := jsonOrFile(c.Answers)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(answers, &o.Answers); err != nil {
		return o, errors.New("--answers is a JSON object from a tool's name to its output")
	}
	return o, nil
}

func printCase(e env, x drill.Case) {
	step := x.Step
	if x.Pass > 1 {
		step = fmt.Sprintf("%s@%d", x.Step, x.Pass)
	}
	fmt.Fprintf(e.out, "%-22s %-24s %7d %8d %6d  %s\n", x.Window, printable(step), x.Effects, x.Repeated, x.People, x.Status)
	for _, f := range x.Findings {
		fmt.Fprintf(e.out, "  FOUND: %s\n", printable(f))
	}
}

func printReport(e env, r drill.Report) {
	fmt.Fprintf(e.out, "%s %d: undisturbed it ends %s with %d effects; %d crashes, %d findings\n", r.Workflow, r.Version, r.Status, r.Effects, len(r.Cases), r.Findings)
	if r.Why != "" {
		fmt.Fprintf(e.out, "why: %s\n", printable(r.Why))
	}
	if len(r.NotReached) > 0 {
		fmt.Fprintf(e.out, "not reached with these answers: %s; give others with --input or --answers\n", strings.Join(r.NotReached, ", "))
	}
}
