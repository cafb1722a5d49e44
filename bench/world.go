package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"countersign/internal/audit"
	"countersign/internal/engine"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

const stepTool = `format: 1
tool: bench.step
version: 1
effect: read
risk: low
params: {type: object, additionalProperties: false, properties: {n: {type: integer}, run: {type: string}}}
summary: "Step ${params.n}"
target: "${params.run}"
http: {method: GET, url: "http://bench.invalid/", timeout: 5s, ok: "status == 200"}
`

// library holds the one workflow and the one tool of the workload.
type library struct {
	tool     *tools.Tool
	workflow *workflow.Workflow
}

func newLibrary(steps int) (*library, error) { return compiledLibrary(reads(steps, "")) }

// reads are so many reads in a row; rest is what the last says besides.
func reads(steps int, rest string) string {
	src := "steps:\n"
	for i := range steps {
		said := ""
		if i == steps-1 {
			said = rest
		}
		src += fmt.Sprintf("  - {id: s%d, call: bench.step, with: {n: %d, run: \"${run.id}\"}%s}\n", i+1, i+1, said)
	}
	return src
}

// looping are reads in a loop that is gone round so many times.
func looping(steps, passes int) string {
	return reads(steps, fmt.Sprintf(", then: {goto: s1, max_passes: %d}", passes))
}

// compiledLibrary is a library of one workflow with the steps.
func compiledLibrary(steps string) (*library, error) {
	tool, err := tools.Compile("step.yaml", []byte(stepTool))
	if err != nil {
		return nil, err
	}
	src := "format: 1\nworkflow: bench\nversion: 1\ninput: {type: object, additionalProperties: false}\n" + steps
	w, err := workflow.Compile("bench.yaml", []byte(src), catalog{tool})
	return &library{tool, w}, err
}

type catalog struct{ tool *tools.Tool }

func (c catalog) Tool(name string) (workflow.ToolInfo, bool) {
	return workflow.ToolInfo{Name: c.tool.Name, Version: c.tool.Version, Digest: c.tool.Digest, Params: c.tool.Params(), Risk: c.tool.Risk}, name == c.tool.Name
}

func (c catalog) ToolNames() []string { return []string{c.tool.Name} }

// Workflow returns the workload's workflow.
func (l *library) Workflow(context.Context, store.Querier, string, string) (*workflow.Workflow, error) {
	return l.workflow, nil
}

// Tool returns the workload's tool.
func (l *library) Tool(context.Context, store.Querier, string, string) (*tools.Tool, error) {
	return l.tool, nil
}

// nowhere is a world whose reads answer at once.
type nowhere struct{ engine.World }

// Call returns the payload of the step.
func (nowhere) Call(_ context.Context, _ *tools.Tool, _ tools.Frozen, s tools.Sending) tools.Outcome {
	var p struct {
		N   int    `json:"n"`
		Run string `json:"run"`
	}
	if err := json.Unmarshal(s.Params, &p); err != nil {
		return tools.Outcome{Status: tools.Failed, Class: tools.ClassBug, Message: err.Error()}
	}
	return tools.Outcome{Status: tools.Confirmed, Output: payload(p.Run, p.N)}
}

// recorder writes the engine's entries into a real audit log.
type recorder struct{ log *audit.Log }

// Record appends one entry.
func (r recorder) Record(ctx context.Context, tx *store.Tx, rec engine.Record) error {
	body, err := json.Marshal(rec.Payload)
	if err != nil {
		return err
	}
	_, err = r.log.Append(ctx, tx, audit.Entry{Tenant: rec.Tenant, Actor: audit.Actor{Kind: rec.Actor.Kind, ID: rec.Actor.ID, Name: rec.Actor.Name},
		Channel: "bench", Action: rec.Action, Subject: rec.Subject, Run: rec.Run, Digest: rec.Digest, Outcome: rec.Outcome, Payload: body})
	return err
}

// shut is a gate that nobody comes to: the workload has no actions.
type shut struct{ engine.Gate }

var errUnexpected = errors.New("bench: the run did not complete")
