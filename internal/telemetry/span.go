package telemetry

import (
	"context"
	"crypto/rand"

	"countersign/internal/engine"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// ids are those a span was given by the engine.
type ids struct {
	trace        trace.TraceID
	span, parent trace.SpanID
}

type idKey struct{}

// idsOf reads the ids of a span; false if they are none.
func idsOf(s engine.Span) (i ids, ok bool) {
	var err error
	if i.trace, err = trace.TraceIDFromHex(s.Trace); err != nil {
		return i, false
	}
	if i.span, err = trace.SpanIDFromHex(s.ID); err != nil {
		return i, false
	}
	if s.Parent != "" {
		i.parent, err = trace.SpanIDFromHex(s.Parent)
	}
	return i, err == nil
}

// given generates the ids that the context holds.
type given struct{}

// NewIDs are those of a span without a parent.
func (given) NewIDs(ctx context.Context) (t trace.TraceID, s trace.SpanID) {
	if i, ok := ctx.Value(idKey{}).(ids); ok {
		return i.trace, i.span
	}
	_, _ = rand.Read(t[:]) // never fails
	_, _ = rand.Read(s[:])
	return t, s
}

// NewSpanID is that of a span below another.
func (g given) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, s := g.NewIDs(ctx)
	return s
}

// nameOf is few words: the kind, and the workflow or step it is of.
func nameOf(s engine.Span) string {
	switch s.Kind {
	case engine.SpanRun, engine.SpanDrive:
		return s.Kind + " " + s.Workflow
	case engine.SpanAttempt, engine.SpanApproval:
		return s.Kind + " " + s.Step
	}
	return s.Kind + " " + s.Tool
}

func kindOf(s engine.Span) trace.SpanKind {
	switch s.Kind {
	case engine.SpanCall, engine.SpanSend, engine.SpanQuery:
		return trace.SpanKindClient
	}
	return trace.SpanKindInternal
}

// bad reports whether a span ended in a failure.
func bad(s engine.Span) bool {
	switch s.Outcome {
	case engine.OutcomeLost, engine.Failed, engine.Unknown, engine.NotDone, engine.Refused:
		return true
	}
	return s.Class != ""
}

func attributesOf(s engine.Span) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("countersign.run", string(s.Run)), attribute.String("countersign.workflow", s.Workflow)}
	add := func(key, value string) {
		if value != "" {
			all = append(all, attribute.String("countersign."+key, value))
		}
	}
	add("step", s.Step)
	add("tool", s.Tool)
	add("idempotency_key", s.Key)
	add("subject", s.Subject)
	add("outcome", s.Outcome)
	add("class", classOf(s.Class))
	if s.Pass > 0 {
		all = append(all, attribute.Int("countersign.pass", s.Pass))
	}
	if s.Attempt > 0 {
		all = append(all, attribute.Int("countersign.attempt", s.Attempt))
	}
	return all
}
