package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/internal/canon"
)

// Next says what the run has to do at the instant now, in order. It is pure:
// the same arguments give the same tasks. An expression that cannot be
// evaluated is not an error of Next but a record task whose step_failed event
// has class invalid; Next itself fails only when out or the context does.
func (w *Workflow) Next(ctx context.Context, s State, run RunInfo, out Outputs, now time.Time) ([]Task, error) {
	switch s.Phase {
	case Fresh:
		return []Task{{Kind: TaskRecord, Events: []Event{{Kind: Started}}}}, nil
	case Over:
		return nil, nil
	}
	p := &plan{w: w, s: s, run: run, out: out, now: now}
	if t, ok := w.ending(s); ok {
		task, err := p.finish(ctx, t)
		task.Open = w.open(s)
		return []Task{task}, err
	}
	var tasks []Task
	for _, step := range w.front(s) {
		task, err := p.step(ctx, step)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, task)
	}
	return tasks, nil
}

// plan is one call of Next.
type plan struct {
	w   *Workflow
	s   State
	run RunInfo
	out Outputs
	now time.Time
}

// step says what to do at a step where control stands.
func (p *plan) step(ctx context.Context, step *Step) (Task, error) {
	st := p.s.Step(step.Path)
	switch p.w.situation(p.s, step) {
	case open:
		return p.waiting(step, st)
	case turning, stopped:
		return p.follow(step, st), nil
	}
	if events := p.w.Stale(p.s, step.Path, p.now); len(events) > 0 {
		return Task{Kind: TaskRecord, Path: step.Path, Pass: st.Pass + 1, Step: step, Events: events}, nil
	}
	return p.begin(ctx, step, st)
}

// waiting is the task of an open step: its timer, or what others will say.
func (p *plan) waiting(step *Step, st StepState) (Task, error) {
	task := Task{Kind: TaskWait, Path: step.Path, Pass: st.Pass, Step: step, Wait: WaitRequest, Outputs: p.digests(step)}
	switch step.Kind {
	case Ask:
		task.Wait, task.Until = WaitAnswer, st.Until
		return task, nil
	case Fork:
		return p.join(step, st)
	case Sleep:
	default:
		return task, nil
	}
	if p.now.Before(st.Until) {
		return Task{Kind: TaskSleep, Path: step.Path, Pass: st.Pass, Step: step, Until: st.Until}, nil
	}
	return p.recorded(step, st.Pass, Event{Kind: SleepDone, Path: step.Path, Pass: st.Pass}), nil
}

// follow is the task of an ended step whose rule does not end the run.
func (p *plan) follow(step *Step, st StepState) Task {
	t := p.w.turn(p.s, step, st)
	if t.do == DoAsk {
		return Task{Kind: TaskWait, Path: step.Path, Pass: st.Pass, Step: step, Wait: WaitPerson, Error: st.Error}
	}
	return p.recorded(step, st.Pass, Event{Kind: Goto, Path: step.Path, Pass: st.Pass, Data: mustJSON(Jump{To: t.to.Path, Why: t.why})})
}

// begin evaluates what the step needs and gives the task that starts its next
// pass.
func (p *plan) begin(ctx context.Context, step *Step, st StepState) (Task, error) {
	vars, err := p.vars(step.refs)
	if err != nil {
		return Task{}, err
	}
	v := &evaluation{ctx: ctx, step: step, vars: vars}
	pass := st.Pass + 1
	if step.when != nil && !v.condition("when", step.when) && v.fault == nil {
		return p.recorded(step, pass, Event{Kind: StepSkipped, Path: step.Path, Pass: pass}), nil
	}
	task := Task{Path: step.Path, Pass: pass, Step: step, Outputs: p.digests(step)}
	p.fill(&task, v, st)
	if ctx.Err() != nil {
		return Task{}, fmt.Errorf("plan step %s: %w", step.Path, ctx.Err())
	}
	if v.fault != nil {
		return p.recorded(step, pass, Event{Kind: StepFailed, Path: step.Path, Pass: pass, Error: v.fault}), nil
	}
	return task, nil
}

// fill evaluates the parts of the step's kind into the task.
func (p *plan) fill(task *Task, v *evaluation, st StepState) {
	step := task.Step
	switch step.Kind {
	case Call:
		task.Kind, task.Params = TaskCall, v.params()
	case Action:
		task.Kind, task.Params, task.Revises = TaskPropose, v.params(), st.Revises
		task.Reason = v.text("reason", step.reason, textBytesMax)
		task.BusinessKey = v.key()
	case Gate:
		task.Kind, task.Revises = TaskApprove, st.Revises
		task.Document = v.value("document", step.document, documentMax)
		if task.Title = step.Title; step.heading != nil {
			task.Title = v.text("title", step.heading, titleRunesMax*4)
		}
	case Ask:
		task.Kind, task.Question = TaskAsk, v.question()
		if step.AnswerWithin > 0 {
			task.Until = p.now.Add(step.AnswerWithin)
		}
	case Set:
		task.Kind, task.Outputs = TaskRecord, nil
		task.Events = []Event{{Kind: StepCompleted, Path: step.Path, Pass: task.Pass, Output: v.value("set", step.set, 0)}}
	case Fork:
		task.Kind, task.Outputs = TaskRecord, nil
		task.Events = []Event{{Kind: BranchesOpened, Path: step.Path, Pass: task.Pass}}
	case Sleep:
		task.Kind, task.Until = TaskSleep, p.now.Add(v.sleep())
		task.Events = []Event{{Kind: SleepSet, Path: step.Path, Pass: task.Pass, Until: task.Until}}
	}
}

func (p *plan) recorded(step *Step, pass int, events ...Event) Task {
	return Task{Kind: TaskRecord, Path: step.Path, Pass: pass, Step: step, Events: events}
}

// finish evaluates the output of a run that has completed; when that fails,
// the run fails.
func (p *plan) finish(ctx context.Context, t turn) (Task, error) {
	f := &Finish{Status: t.status, Error: t.fault}
	if t.status == RunCompleted {
		f.Output = json.RawMessage("null")
		if p.w.output != nil {
			vars, err := p.vars(p.w.outputRefs)
			if err != nil {
				return Task{}, err
			}
			v := &evaluation{ctx: ctx, vars: vars}
			f.Output = v.value("output", p.w.output, 0)
			if ctx.Err() != nil {
				return Task{}, fmt.Errorf("plan output: %w", ctx.Err())
			}
			if v.fault != nil {
				f = &Finish{Status: RunFailed, Error: v.fault}
			}
		}
	}
	return Task{Kind: TaskFinish, Finish: f}, nil
}

// digests maps the steps whose outputs this one is built from to the digests.
func (p *plan) digests(step *Step) map[string]string {
	digests := map[string]string{}
	for _, path := range step.refs {
		if st := p.s.Step(path); st.Output {
			digests[path] = st.Digest
		}
	}
	return digests
}

func digest(output json.RawMessage) string { return canon.Digest(output) }
