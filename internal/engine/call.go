package engine

import (
	"context"
	"fmt"

	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// call carries out a read step: at least once, its output recorded once, in
// one commit.
func (s *session) call(ctx context.Context, t workflow.Task) (*wait, error) {
	if w := s.notBefore(t); w != nil {
		return w, nil
	}
	s.crash("before", t.Path, t.Pass)
	row := s.row(t.Path, t.Pass)
	row.Attempts++
	row.IdempotencyKey = readKey(s.run.Tenant, s.run.ID, t.Path, t.Pass)
	row.InputDigest = digestOf(t.Params)
	one := s.newTry(SpanCall, s.reading(t, row), s.fence)
	out := s.read(ctx, t, row, one)
	if ctx.Err() != nil { // interrupted by us: not a try
		row.Attempts--
		return nil, context.Cause(ctx)
	}
	one.answered(out)
	w, err := s.took(ctx, t, row, one, out)
	one.recorded()
	return w, err
}

// reading is the attempt of a read step.
func (s *session) reading(t workflow.Task, row *Step) Span {
	return Span{Kind: SpanAttempt, Trace: s.run.TraceID, ID: tryID(s.run.TraceID, SpanAttempt, t.Path, t.Pass, row.Attempts, s.fence),
		Parent: driveSpan(s.run.TraceID, s.fence), Run: s.run.ID, Workflow: s.run.Workflow, Step: t.Path, Tool: t.Step.Tool, Pass: t.Pass,
		Attempt: row.Attempts, Key: row.IdempotencyKey}
}

// took records what a read gave.
func (s *session) took(ctx context.Context, t workflow.Task, row *Step, one *try, out tools.Outcome) (*wait, error) {
	if out.Status == tools.Confirmed && out.Class == "" {
		one.log.Info("step completed")
		return nil, s.write(ctx, &commit{events: []workflow.Event{{Kind: workflow.StepCompleted, Path: t.Path, Pass: t.Pass,
			Attempt: row.Attempts, Output: orNull(out.Output)}}})
	}
	f := failureOf(out)
	one.log.Warn("try failed", "class", f.Class, "code", f.Code)
	if w := s.retry(t, f, out.RetryAfter); w != nil {
		return w, nil
	}
	return nil, s.fail(ctx, t, row.Attempts, f)
}

// read makes the one try.
func (s *session) read(ctx context.Context, t workflow.Task, row *Step, one *try) tools.Outcome {
	tool, err := s.tool(t.Step.Tool)
	if err != nil {
		return failed(tools.ClassIncompatible, err)
	}
	params, err := s.e.prepared(ctx, s.boxed, tool, t.Params)
	if err != nil {
		return failed(tools.ClassInvalid, err)
	}
	frozen, err := tool.Freeze(params, s.e.o.Config)
	if err != nil {
		return failed(tools.ClassInvalid, err)
	}
	if t.Step.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.Step.Timeout)
		defer cancel()
	}
	return s.sealOutput(ctx, one.log, tool, safely(tools.Failed, func() tools.Outcome {
		return s.e.o.World.Call(ctx, tool, frozen, s.sending(row.IdempotencyKey, row.IdempotencyKey, row.Attempts, params, one.traceparent(), one.log))
	}))
}

// safely turns a panic of a transport into an outcome of class bug, so that
// one tool cannot take the driver, or other runs, with it.
func safely(status tools.Status, try func() tools.Outcome) (out tools.Outcome) {
	defer func() {
		if v := recover(); v != nil {
			if c, ok := v.(Crashed); ok {
				panic(c)
			}
			out = tools.Outcome{Status: status, Class: tools.ClassBug, Code: "panic", Message: fmt.Sprintf("The transport broke: %v.", v)}
		}
	}()
	return try()
}

func failed(class string, err error) tools.Outcome {
	return tools.Outcome{Status: tools.Failed, Class: class, Message: err.Error()}
}

// failureOf is the failure that an outcome stands for.
func failureOf(out tools.Outcome) workflow.Failure {
	f := workflow.Failure{Class: out.Class, Message: out.Message, Code: out.Code}
	if f.Class == "" {
		f.Class = workflow.Permanent
	}
	if f.Message == "" {
		f.Message = "The tool gave no usable answer."
	}
	return f
}

// fail records that a step failed for good.
func (s *session) fail(ctx context.Context, t workflow.Task, attempt int, f workflow.Failure) error {
	return s.write(ctx, &commit{events: []workflow.Event{failure(t, attempt, f)}})
}

func failure(t workflow.Task, attempt int, f workflow.Failure) workflow.Event {
	return workflow.Event{Kind: workflow.StepFailed, Path: t.Path, Pass: t.Pass, Attempt: attempt, Error: &f}
}
