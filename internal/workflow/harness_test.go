package workflow_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/canon"
	"countersign/internal/schema"
	"countersign/internal/workflow"
)

// tools is the catalogue of the tests: what reads and what writes.
type tools map[string]workflow.ToolInfo

func (t tools) Tool(name string) (workflow.ToolInfo, bool) { info, ok := t[name]; return info, ok }
func (t tools) ToolNames() []string                        { return slices.Sorted(maps.Keys(t)) }

func catalog() tools {
	t := tools{}
	for _, name := range []string{"docs.collect", "planner.draft", "shop.order"} {
		t[name] = workflow.ToolInfo{Name: name, Version: 1}
	}
	for _, name := range []string{"kb.publish", "shop.refund", "ops.restart"} {
		t[name] = workflow.ToolInfo{Name: name, Version: 1, Write: true}
	}
	closed, err := schema.Compile(map[string]any{"type": "object", "additionalProperties": false,
		"required": []any{"service"}, "properties": map[string]any{"service": map[string]any{"type": "string"}, "grace": map[string]any{"type": "integer"}}},
		schema.Options{Object: true})
	if err != nil {
		panic(err)
	}
	restart := t["ops.restart"]
	restart.Params = closed
	t["ops.restart"] = restart
	return t
}

// compile compiles the steps (YAML, indented by nothing) as a whole workflow.
func compile(t testing.TB, steps string) *workflow.Workflow {
	t.Helper()
	w, err := workflow.Compile("w.yaml", []byte(document(steps)), catalog())
	if err != nil {
		t.Fatalf("compile:\n%s\n%v", document(steps), err)
	}
	return w
}

// document is a definition around steps; what follows a line `---` in it goes
// to the top level.
func document(steps string) string {
	steps, rest, _ := strings.Cut(steps, "\n---\n")
	if strings.HasPrefix(steps, "[") {
		steps = "  " + steps // a flow list must be indented
	}
	return "format: 1\nworkflow: w\nversion: 1\ninput: {type: object}\nsteps:\n" + strings.Trim(steps, "\n") + "\n" + rest
}

var begin = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// world is a stand-in for the engine: it keeps the events and outputs of one
// run and gives them to the planner.
type world struct {
	t      testing.TB
	w      *workflow.Workflow
	s      workflow.State
	now    time.Time
	run    workflow.RunInfo
	values map[string]any // outputs by path@pass
	asked  []string       // outputs the planner asked for
	events []workflow.Event
}

func start(t testing.TB, w *workflow.Workflow, input string) *world {
	t.Helper()
	r := &world{t: t, w: w, s: w.Begin(), now: begin, values: map[string]any{}}
	r.run = workflow.RunInfo{ID: "run_1", Key: "k-1", Thread: "th", Initiator: "ana", OnBehalfOf: "ben", StartedAt: begin}
	if err := json.Unmarshal([]byte(input), &r.run.Input); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *world) outputs(path string, pass int) (any, error) {
	key := fmt.Sprintf("%s@%d", path, pass)
	r.asked = append(r.asked, key)
	v, ok := r.values[key]
	if !ok {
		return nil, fmt.Errorf("no output at %s", key)
	}
	return v, nil
}

// tasks asks the planner.
func (r *world) tasks() []workflow.Task {
	r.t.Helper()
	tasks, err := r.w.Next(r.t.Context(), r.s, r.run, r.outputs, r.now)
	if err != nil {
		r.t.Fatalf("next: %v", err)
	}
	return tasks
}

// apply records an event, its time being now.
func (r *world) apply(e workflow.Event) {
	r.t.Helper()
	e.At = r.now
	s, err := r.w.Apply(r.s, e)
	if err != nil {
		r.t.Fatalf("%v\nafter %v", err, r.events)
	}
	r.s, r.events = s, append(r.events, e)
	if len(e.Output) > 0 && e.Path != "" && s.Step(e.Path).Output {
		v, err := canon.Value(e.Output)
		if err != nil {
			r.t.Fatal(err)
		}
		r.values[fmt.Sprintf("%s@%d", e.Path, e.Pass)] = v
	}
}

// next records what is pure and returns the first task that needs the world.
func (r *world) next() workflow.Task {
	r.t.Helper()
	for range 10_000 {
		tasks := r.tasks()
		if len(tasks) == 0 {
			return workflow.Task{}
		}
		task := tasks[0]
		if len(task.Events) == 0 {
			return task
		}
		for _, e := range task.Events {
			r.apply(e)
		}
	}
	r.t.Fatalf("the planner never comes to an end: %v", r.events[len(r.events)-10:])
	return workflow.Task{}
}

// want asserts the next task's kind, path and pass.
func (r *world) want(kind workflow.TaskKind, path string, pass int) workflow.Task {
	r.t.Helper()
	task := r.next()
	if task.Kind != kind || task.Path != path || task.Pass != pass {
		r.t.Fatalf("next task is %s %s@%d (%+v), want %s %s@%d\nevents %v\nstate %s",
			task.Kind, task.Path, task.Pass, task.Error, kind, path, pass, r.events, dump(r.s))
	}
	return task
}

// call asserts that the next task calls the step and answers it.
func (r *world) call(path string, pass int, output string) workflow.Task {
	r.t.Helper()
	task := r.want(workflow.TaskCall, path, pass)
	r.apply(workflow.Event{Kind: workflow.StepCompleted, Path: path, Pass: pass, Attempt: 1, Output: json.RawMessage(output)})
	return task
}

// propose asserts that the next task proposes the action and records it.
func (r *world) propose(path string, pass int) workflow.Task {
	r.t.Helper()
	task := r.want(workflow.TaskPropose, path, pass)
	r.apply(workflow.Event{Kind: workflow.ActionProposed, Path: path, Pass: pass})
	r.want(workflow.TaskWait, path, pass)
	return task
}

func (r *world) reject(path string, pass int, comment string) {
	r.t.Helper()
	kind := workflow.ActionRejected
	if step, _ := r.w.Step(path); step.Kind == workflow.Gate {
		kind = workflow.ApproveDone
	}
	r.apply(workflow.Event{Kind: kind, Path: path, Pass: pass, Output: verdict(workflow.Reject, comment)})
}

// finish asserts how the run ends, records it, and that nothing follows.
func (r *world) finish(status, output string) *workflow.Finish {
	r.t.Helper()
	task := r.want(workflow.TaskFinish, "", 0)
	if task.Finish.Status != status || string(task.Finish.Output) != output {
		r.t.Fatalf("the run ends %s with %s (%v), want %s with %s", task.Finish.Status, task.Finish.Output, task.Finish.Error, status, output)
	}
	r.apply(task.Finish.Event())
	if !r.s.Over() || r.s.Finish.Status != status {
		r.t.Fatalf("after finished the state is %s", dump(r.s))
	}
	if tasks := r.tasks(); len(tasks) != 0 {
		r.t.Fatalf("an ended run has tasks: %v", tasks)
	}
	return task.Finish
}

func verdict(v, comment string) json.RawMessage {
	out, err := canon.Marshal(workflow.Verdict{Verdict: v, By: "Ben", Comment: comment, Digest: "sha256:00"})
	if err != nil {
		panic(err)
	}
	return out
}

func dump(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}
