package workflow

import (
	"time"

	"countersign/internal/expr"
	"countersign/internal/schema"
)

// Kind is what a step does.
type Kind string

// The kinds of steps.
const (
	Call   Kind = "call"
	Action Kind = "action"
	Gate   Kind = "approve"
	Ask    Kind = "ask"
	Set    Kind = "set"
	Sleep  Kind = "sleep"
	Fork   Kind = "parallel"
)

// Step is one compiled step. Its expressions are inside; the planner
// evaluates them.
type Step struct {
	ID       string
	Path     string // where it stands: its id, behind the step and the branch it lies in (par/left/x)
	Index    int    // position in its scope
	Kind     Kind
	Title    string
	Tool     string        // call, action
	Timeout  time.Duration // of one attempt; 0: the tool's own
	FreshFor time.Duration // 0: for ever
	Retries  RetryRule

	Form         *schema.Schema // ask: what an answer must fit
	Roles        []string       // ask: whoever has one of them may answer
	Sensitive    []string       // ask: JSON Pointers into the answer
	AnswerWithin time.Duration  // ask; 0: the question stays open

	scope    *scope   // the list of steps it stands in
	branches []*scope // parallel, in the order of the definition
	guards   []string // approve: paths of the actions it guards

	when                     *expr.Condition
	with, document, set      *expr.Value
	key, reason, heading     *expr.Text
	sleep, question          *expr.Text
	refs                     []string // paths its expressions name, sorted
	then, onReject, onExpire Rule
	onError                  map[string]Rule // by class; "default" for the rest
}

// Optional reports whether the step has a `when`.
func (st *Step) Optional() bool { return st.when != nil }

// RetryRule bounds the attempts of a call, and of an action while its effect
// is known not to have happened.
type RetryRule struct {
	MaxAttempts int           // first try included
	Base        time.Duration // before the second try
	MaxDelay    time.Duration // upper bound of the doubling
	Budget      time.Duration // from the first try to the beginning of the last
}

// Retry decides what follows a failed attempt: after which delay to try again,
// or not at all. attempt is the number of tries made, since the time from the
// first of them, retryAfter what the target asked for (0: nothing), jitter a
// number in [0,1) drawn by the caller. Only transient failures are tried
// again, within the attempts and the budget. The delay is
// min(max_delay, base·2^(attempt-1)) or retryAfter, whichever is longer, plus
// up to half of it by jitter, which never shortens it (DESIGN section 8).
func (st *Step) Retry(attempt int, since time.Duration, f Failure, retryAfter time.Duration, jitter float64) (delay time.Duration, again bool) {
	r := st.Retries
	if f.Class != Transient || attempt >= r.MaxAttempts {
		return 0, false
	}
	delay = max(r.backoff(attempt), retryAfter)
	delay += time.Duration(float64(delay) * min(max(jitter, 0), 1) / 2)
	if delay < 0 || since+delay > r.Budget {
		return 0, false
	}
	return delay, true
}

// backoff is min(max_delay, base·2^(attempt-1)), without overflow.
func (r RetryRule) backoff(attempt int) time.Duration {
	d := r.Base
	for range attempt - 1 {
		if d >= r.MaxDelay {
			break
		}
		d *= 2
	}
	return min(d, r.MaxDelay)
}
