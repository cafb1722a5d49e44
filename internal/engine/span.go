package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"countersign/internal/id"
)

// The kinds of spans.
const (
	SpanRun      = "run"      // from its creation to its end; the root of its trace
	SpanDrive    = "drive"    // from a claim to the release; below the run
	SpanAttempt  = "attempt"  // one try of a step, until its outcome is durable; below the drive
	SpanCall     = "call"     // a read tool at work; below the attempt
	SpanSend     = "send"     // a write tool at work; below the attempt
	SpanQuery    = "query"    // asking a target what happened; below the drive
	SpanApproval = "approval" // from asking people to their decision; below the run
)

// OutcomeLost is the outcome of a span whose process ended before it did:
// whoever took the run over reports it.
const OutcomeLost = "lost"

// Span is a stretch of a run's trace, told when it is over. Its id follows
// from what it is, so that spans of several processes fit together, also where
// one of them died.
type Span struct {
	Kind              string
	Trace, ID, Parent string // hex, as W3C Trace Context writes them; no parent: the root
	Run               id.Run
	Workflow          string
	Step, Tool        string
	Pass, Attempt     int
	Key               string // idempotency key
	Subject           string // id of the effect or the request
	Outcome, Class    string
	Start, End        time.Time
}

// spanID derives the id of a span from its trace and what it is.
func spanID(trace, kind, path string, n ...int64) string {
	b := make([]byte, 0, 160)
	b = append(b, trace...)
	b = append(append(b, '\n'), kind...)
	b = append(append(b, '\n'), path...)
	for _, v := range n {
		b = strconv.AppendInt(append(b, '\n'), v, 10)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

func runSpan(trace string) string { return spanID(trace, SpanRun, "") }

func driveSpan(trace string, fence int64) string { return spanID(trace, SpanDrive, "", fence) }

// tryID is the id of an attempt, or of the call or send below it.
func tryID(trace, kind, path string, pass, attempt int, fence int64) string {
	return spanID(trace, kind, path, int64(pass), int64(attempt), fence)
}

// traceparent names a span to whom it is about to call (W3C Trace Context).
func traceparent(trace, span string) string { return "00-" + trace + "-" + span + "-01" }

// ApprovalSpan is the wait for a decision on a request of the run.
func (r Run) ApprovalSpan(request id.Approval, revision int) Span {
	return Span{Kind: SpanApproval, Trace: r.TraceID, ID: spanID(r.TraceID, SpanApproval, string(request), int64(revision)), Parent: runSpan(r.TraceID),
		Run: r.ID, Workflow: r.Workflow, Subject: string(request)}
}

// driveOf is the drive of a run under a fence.
func driveOf(r Run, fence int64) Span {
	return Span{Kind: SpanDrive, Trace: r.TraceID, ID: driveSpan(r.TraceID, fence), Parent: runSpan(r.TraceID), Run: r.ID, Workflow: r.Workflow}
}

// attemptOf is an attempt that sent an effect.
func attemptOf(r Run, eff Effect) Span {
	return Span{Kind: SpanAttempt, Trace: r.TraceID, ID: tryID(r.TraceID, SpanAttempt, eff.Path, eff.Pass, eff.Attempts, eff.fence),
		Parent: driveSpan(r.TraceID, eff.fence), Run: r.ID, Workflow: r.Workflow, Step: eff.Path, Tool: eff.Tool, Pass: eff.Pass,
		Attempt: eff.Attempts, Key: eff.Key, Subject: string(eff.ID), Start: eff.SentAt}
}

// below is what a tool does for an attempt.
func (a Span) below(kind string, fence int64) Span {
	b := a
	b.Kind, b.Parent, b.ID = kind, a.ID, tryID(a.Trace, kind, a.Step, a.Pass, a.Attempt, fence)
	return b
}

// over is the span with its end.
func (a Span) over(at time.Time, outcome, class string) Span {
	a.End, a.Outcome, a.Class = at, outcome, class
	return a
}
