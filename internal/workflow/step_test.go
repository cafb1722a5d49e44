package workflow_test

import (
	"testing"
	"time"

	"countersign/internal/workflow"

	"pgregory.net/rapid"
)

func TestRetry_Decides(t *testing.T) {
	step := &workflow.Step{Retries: workflow.RetryRule{MaxAttempts: 4, Base: time.Second, MaxDelay: 3 * time.Second, Budget: time.Minute}}
	transient := workflow.Failure{Class: workflow.Transient}
	cases := []struct {
		name       string
		attempt    int
		since      time.Duration
		failure    workflow.Failure
		retryAfter time.Duration
		jitter     float64
		want       time.Duration
		again      bool
	}{
		{"first delay is base", 1, 0, transient, 0, 0, time.Second, true},
		{"doubles", 2, 0, transient, 0, 0, 2 * time.Second, true},
		{"up to max_delay", 3, 0, transient, 0, 0, 3 * time.Second, true},
		{"attempts are limited", 4, 0, transient, 0, 0, 0, false},
		{"jitter only adds", 1, 0, transient, 0, 0.5, 1250 * time.Millisecond, true},
		{"negative jitter adds nothing", 1, 0, transient, 0, -1, time.Second, true},
		{"retry-after is a minimum", 1, 0, transient, 10 * time.Second, 0, 10 * time.Second, true},
		{"short retry-after changes nothing", 3, 0, transient, time.Second, 0, 3 * time.Second, true},
		{"the budget is limited", 1, 59*time.Second + 1, transient, 0, 0, 0, false},
		{"retry-after beyond the budget", 1, 0, transient, 2 * time.Minute, 0, 0, false},
		{"permanent", 1, 0, workflow.Failure{Class: workflow.Permanent}, 0, 0, 0, false},
		{"unknown", 1, 0, workflow.Failure{Class: workflow.Unknown}, 0, 0, 0, false},
	}
	for _, c := range cases {
		got, again := step.Retry(c.attempt, c.since, c.failure, c.retryAfter, c.jitter)
		if got != c.want || again != c.again {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, again, c.want, c.again)
		}
	}
}

func TestRetry_NeverWaitsLessThanAskedNorBeyondTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Int64Range(1, int64(400*24*time.Hour))
		r := workflow.RetryRule{MaxAttempts: rapid.IntRange(1, 100).Draw(t, "max"), Base: time.Duration(d.Draw(t, "base")),
			MaxDelay: time.Duration(d.Draw(t, "delay")), Budget: time.Duration(d.Draw(t, "budget"))}
		step := &workflow.Step{Retries: r}
		attempt, since, after := rapid.IntRange(1, 200).Draw(t, "attempt"), time.Duration(d.Draw(t, "since")), time.Duration(d.Draw(t, "after"))
		delay, again := step.Retry(attempt, since, workflow.Failure{Class: workflow.Transient}, after, rapid.Float64Range(0, 1).Draw(t, "jitter"))
		if again && (delay < after || delay < min(r.Base, r.MaxDelay) || since+delay > r.Budget || attempt >= r.MaxAttempts) {
			t.Fatalf("waits %v for attempt %d after %v, asked for %v, rule %+v", delay, attempt+1, since, after, r)
		}
	})
}
