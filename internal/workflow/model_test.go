package workflow_test

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/workflow"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// loops is how often control may go back in one run, over all its loops.
func loops(w *workflow.Workflow) int {
	n := 0
	for _, e := range w.Graph().Edges {
		if e.Kind == workflow.EdgeBack {
			n += e.Max - 1
		}
	}
	return n
}

// drawSteps writes a random sound definition: every kind of step, conditions,
// references backward, loops and jumps.
func drawSteps(t *rapid.T) string { return drawList(t, "s", 6, 0, true) }

// drawList writes a list of steps whose ids begin with prefix. Where reads age
// depends on the list: an age does not count across branches.
func drawList(t *rapid.T, prefix string, most, depth int, ages bool) string {
	n := rapid.IntRange(1, most).Draw(t, "steps")
	var text strings.Builder
	for i := range n {
		ref := func(name string) string {
			if i == 0 || rapid.Bool().Draw(t, name+" none") {
				return "${input.n}"
			}
			return fmt.Sprintf("${steps.%s%d.output}", prefix, rapid.IntRange(0, i-1).Draw(t, name))
		}
		rule := func(name string) string {
			to := rapid.IntRange(0, n-1).Draw(t, name+" to")
			if to > i {
				return fmt.Sprintf("{goto: %s%d}", prefix, to)
			}
			passes := rapid.IntRange(1, 3).Draw(t, name+" passes")
			return fmt.Sprintf("{goto: %s%d, max_passes: %d}", prefix, to, passes)
		}
		lines := []string{fmt.Sprintf("- id: %s%d", prefix, i)}
		add := func(format string, args ...any) { lines = append(lines, "  "+fmt.Sprintf(format, args...)) }
		kinds := []workflow.Kind{workflow.Call, workflow.Action, workflow.Gate, workflow.Ask, workflow.Set, workflow.Sleep}
		if depth < 2 {
			kinds = append(kinds, workflow.Fork)
		}
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		switch kind {
		case workflow.Call:
			add(`call: docs.collect`)
			add(`with: {x: "%s"}`, ref("with"))
			if ages && rapid.Bool().Draw(t, "fresh") {
				add(`fresh_for: %s`, rapid.SampledFrom([]string{"1h", "3h"}).Draw(t, "fresh for"))
			}
		case workflow.Action:
			add(`action: kb.publish`)
			add(`with: {x: "%s"}`, ref("with"))
		case workflow.Gate:
			add(`approve: {document: "%s"}`, ref("document"))
		case workflow.Ask:
			add(`ask: "How much for %s?"`, ref("ask"))
			add(`form: {type: object, properties: {x: {type: integer}}}`)
			if rapid.Bool().Draw(t, "deadline") {
				add(`answer_within: 2h`)
				add(`on_expire: %s`, rapid.SampledFrom([]string{"end", rule("on_expire")}).Draw(t, "expire"))
			}
		case workflow.Set:
			add(`set: ["%s"]`, ref("set"))
		case workflow.Sleep:
			add(`sleep: 1h`)
		case workflow.Fork:
			add(`parallel:`)
			for b := range rapid.IntRange(2, 3).Draw(t, "branches") {
				add(`  b%d:`, b)
				inner := drawList(t, fmt.Sprintf("%s%d_%d_", prefix, i, b), 3, depth+1, false)
				add("%s", "    "+strings.ReplaceAll(strings.TrimSuffix(inner, "\n"), "\n", "\n      "))
			}
		}
		optional := rapid.Bool().Draw(t, "when?")
		if optional {
			add(`when: input.n >= %d`, rapid.IntRange(0, 6).Draw(t, "when"))
			if rapid.Bool().Draw(t, "then?") {
				add(`then: %s`, rapid.SampledFrom([]string{"end", rule("then")}).Draw(t, "then"))
			}
		}
		if kind == workflow.Action || kind == workflow.Gate {
			add(`on_reject: %s`, rapid.SampledFrom([]string{"end", rule("on_reject")}).Draw(t, "reject"))
			add(`on_expire: %s`, rapid.SampledFrom([]string{"end", rule("on_expire")}).Draw(t, "expire"))
		}
		add(`on_error: %s`, rapid.SampledFrom([]string{"fail", "end", "ask_person", "{denied: end, default: fail}", rule("on_error")}).Draw(t, "error"))
		text.WriteString(strings.Join(lines, "\n") + "\n")
	}
	return text.String()
}

// answer draws what the outside may say to a task.
func answer(t *rapid.T, task workflow.Task, now time.Time) []workflow.Event {
	if len(task.Events) > 0 {
		return task.Events
	}
	pick := func(kinds ...workflow.EventKind) []workflow.Event {
		return wellFormed(rapid.SampledFrom(kinds).Draw(t, "answer"), task.Path, task.Pass)
	}
	switch task.Kind {
	case workflow.TaskCall:
		return pick(workflow.StepCompleted, workflow.StepCompleted, workflow.StepFailed)
	case workflow.TaskPropose:
		return pick(workflow.ActionProposed, workflow.ActionProposed, workflow.ActionDenied)
	case workflow.TaskApprove:
		return pick(workflow.ApproveOpened)
	case workflow.TaskAsk:
		e := pick(workflow.AskOpened)
		e[0].Until = task.Until
		return e
	case workflow.TaskFinish:
		return []workflow.Event{task.Finish.Event()}
	case workflow.TaskWait:
		switch {
		case task.Wait == workflow.WaitPerson:
			return pick(workflow.StepRetried, workflow.Cancelled)
		case task.Wait == workflow.WaitAnswer && !task.Until.IsZero():
			return pick(workflow.AskAnswered, workflow.AskAnswered, workflow.AskExpired)
		case task.Wait == workflow.WaitAnswer:
			return pick(workflow.AskAnswered)
		case task.Step.Kind == workflow.Gate:
			e := pick(workflow.ApproveDone, workflow.ApproveDone, workflow.ActionExpired, workflow.ActionRevised)
			if e[0].Kind == workflow.ApproveDone && rapid.Bool().Draw(t, "reject") {
				e[0].Output = verdict(workflow.Reject, "no")
			}
			return e
		}
		return pick(workflow.EffectConfirmed, workflow.EffectConfirmed, workflow.EffectRefused, workflow.ActionRejected, workflow.ActionExpired, workflow.ActionRevised)
	}
	return nil
}

// model keeps the little that the properties are about, apart from the state.
type model struct {
	open   map[string]bool // proposals
	extra  int             // passes that people and stale reads added
	events []workflow.Event
}

func (m *model) saw(t *rapid.T, w *workflow.Workflow, e workflow.Event) {
	switch e.Kind {
	case workflow.ActionProposed, workflow.ApproveOpened, workflow.AskOpened:
		if m.open[e.Path] {
			t.Fatalf("a second proposal at %s while one is open", e.Path)
		}
		m.open[e.Path] = true
	case workflow.ActionDenied, workflow.ActionRejected, workflow.ActionExpired, workflow.EffectConfirmed,
		workflow.EffectRefused, workflow.EffectAbandoned, workflow.ApproveDone, workflow.AskAnswered, workflow.AskExpired, workflow.StepFailed:
		delete(m.open, e.Path)
	case workflow.StepRetried:
		m.extra++
	case workflow.StepRefreshed:
		m.extra++
		for path := range m.open {
			if step, _ := w.Step(path); step.Kind == workflow.Ask {
				t.Fatalf("a stale read takes back the question %s", path)
			}
		}
		clear(m.open) // Stale is only asked about requests that were not sent
	}
	m.events = append(m.events, e)
}

func TestModel_RandomRunsKeepThePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawSteps(t)
		w, err := workflow.Compile("w.yaml", []byte(document(text)), catalog())
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		run := workflow.RunInfo{ID: "run_1", Input: map[string]any{"n": float64(rapid.IntRange(0, 5).Draw(t, "n"))}, StartedAt: begin}
		out := func(string, int) (any, error) { return float64(1), nil }
		m := &model{open: map[string]bool{}}
		s, now := w.Begin(), begin
		for range rapid.IntRange(1, 60).Draw(t, "length") {
			now = now.Add(time.Duration(rapid.IntRange(-1, 3).Draw(t, "hours")) * time.Hour)
			tasks, err := w.Next(t.Context(), s, run, out, now)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := w.Next(t.Context(), s, run, out, now)
			if diff := cmp.Diff(tasks, again, cmp.Comparer(func(a, b *workflow.Step) bool { return a == b })); diff != "" {
				t.Fatalf("next is not deterministic:\n%s", diff)
			}
			if s.Over() != (len(tasks) == 0) {
				t.Fatalf("over %v, yet tasks %v", s.Over(), tasks)
			}
			var events []workflow.Event
			wild := rapid.IntRange(0, 9).Draw(t, "wild") == 0
			switch {
			case wild:
				kind := rapid.SampledFrom(workflow.Kinds).Draw(t, "kind")
				paths := []string{"s9"}
				for _, info := range w.Steps() {
					paths = append(paths, info.Path)
				}
				events = wellFormed(kind, rapid.SampledFrom(paths).Draw(t, "path"), rapid.IntRange(0, 4).Draw(t, "pass"))
				if kind == workflow.StepRefreshed || kind == workflow.Cancelled {
					events = nil
				}
			case len(tasks) > 0:
				task := tasks[rapid.IntRange(0, len(tasks)-1).Draw(t, "task")]
				events = answer(t, task, now)
				if task.Kind == workflow.TaskWait && task.Wait == workflow.WaitRequest && rapid.Bool().Draw(t, "about to send") {
					if stale := w.Stale(s, task.Path, now); len(stale) > 0 {
						events = stale
					}
				}
			}
			for _, e := range events {
				e.At = now
				before := dump(s)
				next, err := w.Apply(s, e)
				if dump(s) != before {
					t.Fatalf("apply of %s changed its argument", e)
				}
				if err != nil {
					if !wild {
						t.Fatalf("the answer to a task is refused: %v\n%s", err, text)
					}
					continue
				}
				if s.Over() {
					t.Fatalf("%s after the end", e)
				}
				apartFrom(t, w, s, next, e)
				s = next
				m.saw(t, w, e)
			}
			check(t, w, s, text, m)
		}
	})
}

// apartFrom holds that what happens in a branch changes no step outside of it.
func apartFrom(t *rapid.T, w *workflow.Workflow, s, next workflow.State, e workflow.Event) {
	branch := path.Dir(e.Path)
	if branch == "." {
		return
	}
	for _, info := range w.Steps() {
		if !strings.HasPrefix(info.Path, branch+"/") && !cmp.Equal(s.Step(info.Path), next.Step(info.Path)) {
			t.Fatalf("%s changes %s from %+v to %+v", e, info.Path, s.Step(info.Path), next.Step(info.Path))
		}
	}
}

// check holds the properties after every event.
func check(t *rapid.T, w *workflow.Workflow, s workflow.State, text string, m *model) {
	folded, err := w.Fold(m.events)
	if diff := cmp.Diff(s, folded); err != nil || diff != "" {
		t.Fatalf("fold of the same events: %v\n%s", err, diff)
	}
	for path, st := range s.Steps {
		if st.Pass > 1+loops(w)+m.extra {
			t.Fatalf("step %s is at pass %d; the loops allow %d\n%s", path, st.Pass, 1+loops(w)+m.extra, text)
		}
		if st.Output != (st.Digest != "") {
			t.Fatalf("step %s: output %v, digest %q", path, st.Output, st.Digest)
		}
	}
	if !s.Over() {
		return
	}
	for _, kind := range workflow.Kinds {
		for _, info := range w.Steps() {
			for _, e := range wellFormed(kind, info.Path, s.Step(info.Path).Pass) {
				if _, err := w.Apply(s, e); err == nil {
					t.Fatalf("%s is accepted after the end", e)
				}
			}
		}
	}
}

// TestModel_EveryRunEnds answers the tasks and nothing else: with bounded
// loops every run comes to an end or waits for a person.
func TestModel_EveryRunEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawSteps(t)
		w, err := workflow.Compile("w.yaml", []byte(document(text)), catalog())
		if err != nil {
			t.Fatal(err)
		}
		run := workflow.RunInfo{Input: map[string]any{"n": float64(rapid.IntRange(0, 5).Draw(t, "n"))}}
		s, now := w.Begin(), begin
		for range 5000 {
			tasks, err := w.Next(t.Context(), s, run, func(string, int) (any, error) { return float64(1), nil }, now)
			if err != nil {
				t.Fatal(err)
			}
			if len(tasks) == 0 || tasks[0].Wait == workflow.WaitPerson {
				return
			}
			task := tasks[0]
			if task.Kind == workflow.TaskSleep {
				now = task.Until
			}
			events := slices.DeleteFunc(answer(t, task, now), func(e workflow.Event) bool { return e.Kind == workflow.ActionRevised })
			for _, e := range events {
				e.At = now
				if s, err = w.Apply(s, e); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Fatalf("the run does not end:\n%s\n%s", text, dump(s))
	})
}

func TestModel_TheCompiledFormRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawSteps(t)
		w, err := workflow.Compile("w.yaml", []byte(document(text)), catalog())
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := workflow.Load(w.Compiled)
		if err != nil {
			t.Fatalf("%v\n%s", err, w.Compiled)
		}
		if loaded.Digest != w.Digest || !cmp.Equal(loaded.Steps(), w.Steps()) || !cmp.Equal(loaded.Graph(), w.Graph()) || !cmp.Equal(loaded.Tools, w.Tools) {
			t.Fatalf("loaded %s, compiled %s", loaded.Digest, w.Digest)
		}
	})
}

func FuzzApply(f *testing.F) {
	f.Add([]byte(`[{"kind":"started"},{"kind":"step_completed","path":"a","pass":1,"output":1}]`))
	f.Add([]byte(`[{"kind":"started"},{"kind":"goto","path":"a","pass":1,"data":{"to":"a","why":"then"}}]`))
	w := compile(f, "- {id: a, call: docs.collect, fresh_for: 1h, then: {goto: b}}\n- {id: b, action: kb.publish, on_error: {goto: a, max_passes: 2}}\n- {id: c, set: 1}")
	f.Fuzz(func(t *testing.T, src []byte) {
		var events []workflow.Event
		if json.Unmarshal(src, &events) != nil {
			t.Skip("not a list of events")
		}
		s := w.Begin()
		for _, e := range events {
			next, err := w.Apply(s, e)
			if err != nil && !cmp.Equal(next, s) {
				t.Fatalf("%s: an error and another state", e)
			}
			s = next
		}
	})
}
