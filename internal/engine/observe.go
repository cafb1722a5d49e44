package engine

import (
	"time"

	"countersign/internal/store"
	"countersign/internal/workflow"
)

// Observer is told what was done, for metrics and traces. It decides nothing,
// returns at once and cannot fail. What it is told is over; it never sees
// input, parameters, output or messages.
type Observer interface {
	Note(Fact)
	Span(Span)
}

// The kinds of facts, with what of a Fact each fills in beside its workflow.
const (
	FactRun      = "run"      // a run ended: Outcome its status, Took
	FactStep     = "step"     // a pass of a step ended: Step, Outcome, Class, Took
	FactTry      = "try"      // a tool was called or sent to: Step, Tool, Outcome, Class, Took
	FactQuery    = "query"    // a target was asked what happened: Step, Tool, Outcome
	FactRetry    = "retry"    // a failed try will be repeated: Step, Class
	FactResume   = "resume"   // a run was claimed: Outcome what for
	FactTakeover = "takeover" // its driver had not given it up: Outcome why
	FactFenced   = "fenced"   // a driver found that it had lost its run
	FactBlocked  = "blocked"  // a person must act: Outcome the cause, Class
	FactEffect   = "effect"   // an effect changed its status: Tool, Outcome; no workflow
	FactApproval = "approval" // a request was decided or closed: Outcome its status, Took the wait
	FactRepeat   = "repeat"   // a request was answered with what it did before: Outcome what kind; no workflow
)

// Fact is one thing that happened, in words of which there are few: names of
// definitions and of outcomes, never an id.
type Fact struct {
	Kind                 string
	Workflow, Step, Tool string
	Outcome, Class       string
	Took                 time.Duration
}

// The causes of a resume and of a takeover.
const (
	ResumeStart    = "start"    // for the first time
	ResumeQueue    = "queue"    // its driver had stopped in order, or a person answered or settled an effect
	ResumeTimer    = "timer"    // a sleep is over
	ResumeRetry    = "retry"    // the next try is due
	ResumeApproval = "approval" // a request was decided or is due
	ResumeInput    = "input"
	ResumePerson   = "person"
	ResumeProgram  = "program"
	ResumeTakeover = "takeover"

	TakeoverRestart = "restart" // the driver's process is gone
	TakeoverTimeout = "timeout" // its lease ran out

	RepeatAnswer = "answer" // the same answer to a question again
)

// note tells the observer a fact.
func (e *Engine) note(f Fact) {
	if e.o.Observer != nil {
		e.o.Observer.Note(f)
	}
}

// noteAfter tells it once the transaction is durable.
func (e *Engine) noteAfter(tx *store.Tx, f Fact) {
	if e.o.Observer != nil {
		tx.AfterCommit(func() { e.o.Observer.Note(f) })
	}
}

// observeClaim tells why a run was claimed, and of the driver before that did
// not give it up.
func (e *Engine) observeClaim(before Run, by Actor) {
	if e.o.Observer == nil {
		return
	}
	cause := causeOf(before, by)
	e.note(Fact{Kind: FactResume, Workflow: before.Workflow, Outcome: cause})
	if before.Lease.Owner == "" {
		return
	}
	why := TakeoverTimeout
	if before.epoch < e.o.Epoch {
		why = TakeoverRestart
	}
	e.note(Fact{Kind: FactTakeover, Workflow: before.Workflow, Outcome: why})
}

func causeOf(before Run, by Actor) string {
	switch {
	case by.Kind == ActorPerson:
		return ResumePerson
	case by.Kind != ActorEngine:
		return ResumeProgram
	case before.Lease.Owner != "":
		return ResumeTakeover
	case before.Lease.Fence == 0:
		return ResumeStart
	}
	switch before.Status {
	case Sleeping:
		return ResumeTimer
	case Retrying:
		return ResumeRetry
	case WaitingApproval:
		return ResumeApproval
	case WaitingInput:
		return ResumeInput
	}
	return ResumeQueue
}

// ends maps the events that end a pass of a step to how it ended.
var ends = map[workflow.EventKind]string{
	workflow.StepCompleted: "completed", workflow.EffectConfirmed: "completed", workflow.SleepDone: "completed", workflow.ApproveDone: "completed",
	workflow.AskAnswered: "completed", workflow.AskExpired: "expired",
	workflow.StepSkipped: "skipped", workflow.StepFailed: "failed", workflow.EffectRefused: "failed", workflow.EffectAbandoned: "abandoned",
	workflow.ActionDenied: "denied", workflow.ActionRejected: "rejected", workflow.ActionExpired: "expired",
}

// stepEnded is the fact of an event that ended a pass; false for another.
func stepEnded(workflowName string, row *Step, ev workflow.Event, at time.Time) (Fact, bool) {
	outcome, ok := ends[ev.Kind]
	f := Fact{Kind: FactStep, Workflow: workflowName, Step: ev.Path, Tool: row.Tool, Outcome: outcome, Took: at.Sub(row.StartedAt)}
	if ev.Error != nil {
		f.Class = ev.Error.Class
	}
	return f, ok
}

// observeCommit tells what a commit of the session made durable.
func (s *session) observeCommit(c *commit) {
	if s.e.o.Observer == nil {
		return
	}
	for _, m := range c.made {
		if m.ev.Path == "" {
			continue
		}
		if f, ok := stepEnded(s.run.Workflow, s.row(m.ev.Path, m.ev.Pass), m.ev, s.now); ok {
			s.e.note(f)
		}
	}
	switch {
	case Final(s.run.Status):
		s.e.runEnded(s.run, s.run.FinishedAt)
	case s.run.Status == Blocked && s.left:
		s.e.note(blockedFact(s.run.Workflow, s.run.Error))
	}
}

func blockedFact(workflowName string, f *workflow.Failure) Fact {
	out := Fact{Kind: FactBlocked, Workflow: workflowName, Outcome: CausePerson}
	if f == nil {
		return out
	}
	out.Class = f.Class
	if cause := causes[f.Code]; cause != "" {
		out.Outcome = cause
	}
	return out
}

// runEnded tells that a run is over, and closes its trace.
func (e *Engine) runEnded(r Run, at time.Time) {
	if e.o.Observer == nil {
		return
	}
	e.note(Fact{Kind: FactRun, Workflow: r.Workflow, Outcome: r.Status, Took: at.Sub(r.CreatedAt)})
	e.o.Observer.Span(Span{Kind: SpanRun, Trace: r.TraceID, ID: runSpan(r.TraceID), Run: r.ID, Workflow: r.Workflow,
		Outcome: r.Status, Start: r.CreatedAt, End: at})
}

// effectMoved counts a transition of the ledger once it is durable.
func (e *Engine) effectMoved(tx *store.Tx, eff *Effect) {
	e.noteAfter(tx, Fact{Kind: FactEffect, Tool: eff.Tool, Outcome: eff.Status})
}
