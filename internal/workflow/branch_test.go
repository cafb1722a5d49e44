package workflow_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/workflow"

	"github.com/google/go-cmp/cmp"
)

const twoBranches = `
- {id: a, set: 7}
- id: par
  parallel:
    left:
      - {id: read, call: docs.collect, with: {x: "${steps.a.output}"}}
      - {id: publish, action: kb.publish, with: {x: "${steps.read.output}"}}
    right:
      - {id: ok, approve: {document: "${steps.a.output}"}}
      - {id: refund, action: shop.refund}
- {id: z, set: ["${steps.par.output.left}", "${steps.par.output.right}"]}
---
output: "${steps.z.output}"
`

// at lists the tasks in short: kind and path.
func (r *world) at() []string {
	r.t.Helper()
	var at []string
	for _, task := range r.tasks() {
		at = append(at, string(task.Kind)+" "+task.Path)
	}
	return at
}

func (r *world) wantAt(want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.at()); diff != "" {
		r.t.Fatalf("tasks (-want +got):\n%s\nevents %v", diff, r.events)
	}
}

func (r *world) record(kind workflow.EventKind, path string, pass int, output string) {
	r.t.Helper()
	e := workflow.Event{Kind: kind, Path: path, Pass: pass}
	if output != "" {
		e.Output = json.RawMessage(output)
	}
	r.apply(e)
}

// forked is a run of two branches that has come to them.
func forked(t *testing.T, steps string) *world {
	r := start(t, compile(t, steps), `{}`)
	for r.tasks()[0].Kind == workflow.TaskRecord && len(r.at()) == 1 {
		for _, e := range r.tasks()[0].Events {
			r.apply(e)
		}
	}
	return r
}

func TestParallel_BranchesGoOnByThemselvesAndJoin(t *testing.T) {
	r := forked(t, twoBranches)
	r.wantAt("call par/left/read", "approve par/right/ok")
	if got := string(r.tasks()[0].Params); got != `{"x":7}` {
		t.Errorf("a branch is given %s of what lies before it", got)
	}
	r.record(workflow.ApproveOpened, "par/right/ok", 1, "")
	r.record(workflow.ApproveDone, "par/right/ok", 1, string(verdict(workflow.Approve, "")))
	r.wantAt("call par/left/read", "propose par/right/refund")
	r.record(workflow.ActionProposed, "par/right/refund", 1, "")
	r.record(workflow.EffectConfirmed, "par/right/refund", 1, `{"id":2}`)
	r.wantAt("call par/left/read")
	r.record(workflow.StepCompleted, "par/left/read", 1, `"text"`)
	if got := r.tasks()[0]; string(got.Params) != `{"x":"text"}` || got.Outputs["par/left/read"] == "" {
		t.Errorf("inside a branch %s is named, with outputs %v", got.Params, got.Outputs)
	}
	r.record(workflow.ActionProposed, "par/left/publish", 1, "")
	r.record(workflow.EffectConfirmed, "par/left/publish", 1, `1`)
	r.finish("completed", `[1,{"id":2}]`)
	if got := r.values["par@1"]; !cmp.Equal(got, map[string]any{"left": float64(1), "right": map[string]any{"id": float64(2)}}) {
		t.Errorf("the output of the branches is %v", got)
	}
}

func TestParallel_AFoldOfTheEventsIsTheState(t *testing.T) {
	r := forked(t, twoBranches)
	r.record(workflow.StepCompleted, "par/left/read", 1, `1`)
	r.record(workflow.ApproveOpened, "par/right/ok", 1, "")
	s, err := r.w.Fold(r.events)
	if diff := cmp.Diff(r.s, s); err != nil || diff != "" {
		t.Fatalf("fold: %v\n%s", err, diff)
	}
	for _, path := range []string{"par", "z", "par/left/publish2", "left/read"} {
		if _, err := r.w.Apply(r.s, workflow.Event{Kind: workflow.StepCompleted, Path: path, Pass: 1, At: begin, Output: json.RawMessage(`1`)}); err == nil {
			t.Errorf("%s completes while its branches run", path)
		}
	}
}

func TestParallel_AnEndInABranchEndsTheRunAndNamesWhatIsOpen(t *testing.T) {
	r := forked(t, twoBranches)
	r.record(workflow.StepCompleted, "par/left/read", 1, `1`)
	r.record(workflow.ActionProposed, "par/left/publish", 1, "")
	r.record(workflow.ApproveOpened, "par/right/ok", 1, "")
	r.reject("par/right/ok", 1, "no")
	tasks := r.tasks()
	if len(tasks) != 1 || tasks[0].Kind != workflow.TaskFinish || tasks[0].Finish.Status != workflow.RunRejected {
		t.Fatalf("after a rejection the tasks are %v", tasks)
	}
	if want := []string{"par/left/publish"}; !cmp.Equal(tasks[0].Open, want) {
		t.Errorf("open are %v, want %v", tasks[0].Open, want)
	}
	// What was sent is still recorded, and the end stays what it was.
	r.record(workflow.EffectConfirmed, "par/left/publish", 1, `1`)
	if got := r.tasks()[0]; got.Kind != workflow.TaskFinish || got.Finish.Status != workflow.RunRejected || len(got.Open) != 0 {
		t.Errorf("after the effect: %+v", got)
	}
}

func TestParallel_TheWorstEndCounts(t *testing.T) {
	r := forked(t, `
- id: par
  parallel:
    left: [{id: a, set: 1, then: end}]
    right: [{id: b, action: kb.publish}]
`)
	for _, e := range r.tasks()[0].Events {
		r.apply(e)
	}
	if got := r.tasks()[0].Finish; got == nil || got.Status != workflow.RunCompleted {
		t.Fatalf("after `then: end` the tasks are %v", r.at())
	}
	s, err := r.w.Apply(r.s, workflow.Event{Kind: workflow.ActionProposed, Path: "par/right/b", Pass: 1})
	if err != nil {
		t.Fatal(err)
	}
	r.s = s
	r.record(workflow.EffectRefused, "par/right/b", 1, "")
	if got := r.tasks()[0].Finish; got == nil || got.Status != workflow.RunFailed {
		t.Errorf("a refusal beside `then: end` ends the run %v", got)
	}
}

func TestParallel_AskPersonHoldsOneBranchAlone(t *testing.T) {
	r := forked(t, strings.Replace(twoBranches, `publish, with: {x: "${steps.read.output}"}`, `publish, with: {x: "${steps.read.output}"}, on_error: ask_person`, 1))
	r.record(workflow.StepCompleted, "par/left/read", 1, `1`)
	r.record(workflow.ActionProposed, "par/left/publish", 1, "")
	r.record(workflow.EffectRefused, "par/left/publish", 1, "")
	r.wantAt("wait par/left/publish", "approve par/right/ok")
	r.record(workflow.StepRetried, "par/left/publish", 1, "")
	r.wantAt("propose par/left/publish", "approve par/right/ok")
}

func TestParallel_ALoopInABranchTouchesNoOther(t *testing.T) {
	r := forked(t, `
- id: par
  parallel:
    left:
      - {id: read, call: docs.collect}
      - {id: publish, action: kb.publish, on_reject: {goto: read, max_passes: 2}}
    right: [{id: refund, action: shop.refund}]
`)
	r.record(workflow.ActionProposed, "par/right/refund", 1, "")
	r.record(workflow.StepCompleted, "par/left/read", 1, `1`)
	r.record(workflow.ActionProposed, "par/left/publish", 1, "")
	before := r.s.Step("par/right/refund")
	r.reject("par/left/publish", 1, "no")
	for _, e := range r.tasks()[0].Events {
		r.apply(e)
	}
	r.wantAt("call par/left/read", "wait par/right/refund")
	if got := r.s.Step("par/left/read"); got.Pass != 1 || got.Status != workflow.Pending {
		t.Errorf("the read is %+v", got)
	}
	if !cmp.Equal(before, r.s.Step("par/right/refund")) {
		t.Errorf("the other branch is %+v", r.s.Step("par/right/refund"))
	}
}

func TestParallel_GoingBackBeforeItRunsTheBranchesAnew(t *testing.T) {
	r := forked(t, `
- {id: a, call: docs.collect}
- id: par
  parallel: {left: [{id: l, set: 1}], right: [{id: m, set: 2}]}
- {id: ok, approve: {document: "${steps.par.output}"}, on_reject: {goto: a, max_passes: 2}}
`)
	r.call("a", 1, `1`)
	r.want(workflow.TaskApprove, "ok", 1)
	r.record(workflow.ApproveOpened, "ok", 1, "")
	r.reject("ok", 1, "again")
	r.call("a", 2, `1`)
	r.want(workflow.TaskApprove, "ok", 2)
	for _, path := range []string{"par", "par/left/l", "par/right/m"} {
		if st := r.s.Step(path); st.Pass != 2 || st.Status != workflow.Completed {
			t.Errorf("%s is %+v, want its second pass", path, st)
		}
	}
}

func TestParallel_SkippedAsAWhole(t *testing.T) {
	r := forked(t, `
- {id: par, when: "false", parallel: {left: [{id: l, call: docs.collect}], right: [{id: m, set: 2}]}}
- {id: z, set: "${steps.par.status}"}
---
output: "${steps.z.output}"
`)
	r.finish("completed", `"skipped"`)
}

func TestParallel_InsideEachOther(t *testing.T) {
	r := forked(t, `
- id: par
  parallel:
    left:
      - {id: b, set: 5}
      - id: inner
        parallel: {x: [{id: c, call: docs.collect, with: {v: "${steps.b.output}"}}], y: [{id: d, set: 1}]}
    right: [{id: e, sleep: 1h}]
---
output: "${steps.par.output}"
`)
	for len(r.tasks()) > 0 && r.tasks()[0].Kind == workflow.TaskRecord {
		for _, e := range r.tasks()[0].Events {
			r.apply(e)
		}
	}
	r.wantAt("call par/left/inner/x/c", "record par/left/inner/y/d", "sleep par/right/e")
	r.record(workflow.StepCompleted, "par/left/inner/x/c", 1, `9`)
	r.now = r.now.Add(time.Minute)
	for range 20 {
		tasks := r.tasks()
		i := slices.IndexFunc(tasks, func(task workflow.Task) bool { return len(task.Events) > 0 })
		if i < 0 {
			break
		}
		for _, e := range tasks[i].Events {
			r.apply(e)
		}
	}
	r.wantAt("sleep par/right/e")
	r.now = r.now.Add(2 * time.Hour)
	r.finish("completed", `{"left":{"x":9,"y":1},"right":null}`)
}

func TestParallel_AStaleReadOfABranchIsReadAgainThere(t *testing.T) {
	r := forked(t, `
- id: par
  parallel:
    left:
      - {id: read, call: docs.collect, fresh_for: 1h}
      - {id: publish, action: kb.publish, with: {x: "${steps.read.output}"}}
    right: [{id: refund, action: shop.refund}]
`)
	r.record(workflow.StepCompleted, "par/left/read", 1, `1`)
	r.record(workflow.ActionProposed, "par/left/publish", 1, "")
	r.record(workflow.ActionProposed, "par/right/refund", 1, "")
	r.now = r.now.Add(2 * time.Hour)
	if got := r.w.Stale(r.s, "par/right/refund", r.now); len(got) != 0 {
		t.Errorf("the other branch is stale: %v", got)
	}
	for _, e := range r.w.Stale(r.s, "par/left/publish", r.now) {
		r.apply(e)
	}
	r.wantAt("call par/left/read", "wait par/right/refund")
}

func TestGraph_BranchesHaveColumns(t *testing.T) {
	g := compile(t, twoBranches).Graph()
	at := map[string][2]int{}
	for _, n := range g.Nodes {
		at[n.Path] = [2]int{n.Row, n.Col}
	}
	want := map[string][2]int{"a": {0, 0}, "par": {1, 0}, "par/left/read": {2, 0}, "par/left/publish": {3, 0},
		"par/right/ok": {2, 1}, "par/right/refund": {3, 1}, "z": {4, 0}, "": {5, 0}}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Errorf("rows and columns (-want +got):\n%s", diff)
	}
	var next []string
	for _, e := range g.Edges {
		next = append(next, e.From+">"+e.To)
	}
	wantNext := []string{"a>par", "par>par/left/read", "par>par/right/ok", "par/left/read>par/left/publish", "par/left/publish>z",
		"par/right/ok>par/right/refund", "par/right/refund>z", "z>"}
	if diff := cmp.Diff(wantNext, next); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
}

func TestParallel_TheCompiledFormRoundTrips(t *testing.T) {
	w := compile(t, twoBranches)
	loaded, err := workflow.Load(w.Compiled)
	if err != nil || loaded.Digest != w.Digest || !cmp.Equal(loaded.Steps(), w.Steps()) || !cmp.Equal(loaded.Graph(), w.Graph()) {
		t.Fatalf("load: %v", err)
	}
	for name, src := range map[string]string{
		"branches of another kind": strings.Replace(string(w.Compiled), `"kind":"parallel"`, `"kind":"set"`, 1),
		"a branch without steps":   strings.Replace(string(w.Compiled), `"name":"right"`, `"name":"left"`, 1),
	} {
		if _, err := workflow.Load(json.RawMessage(src)); err == nil {
			t.Errorf("%s is loaded", name)
		}
	}
}
