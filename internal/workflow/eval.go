package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"countersign/internal/canon"
	"countersign/internal/expr"
	"countersign/internal/strictyaml"
)

// vars are the names an expression sees. Only the outputs of the steps it
// names are asked for; a step without an output has null.
func (p *plan) vars(refs []string) (map[string]any, error) {
	steps := make(map[string]any, len(refs))
	for _, path := range refs {
		st := p.s.Step(path)
		var output any
		if st.Output {
			var err error
			if output, err = p.out(path, st.Pass); err != nil {
				return nil, fmt.Errorf("output of step %s, pass %d: %w", path, st.Pass, err)
			}
		}
		id := path
		if step, ok := p.w.Step(path); ok {
			id = step.ID
		}
		steps[id] = map[string]any{"output": output, "status": string(st.Status)}
	}
	return map[string]any{"input": p.run.Input, "steps": steps, "run": p.runVars()}, nil
}

func (p *plan) runVars() map[string]any {
	var feedback any
	if f := p.s.Feedback; f != nil {
		feedback = map[string]any{"path": f.Path, "pass": float64(f.Pass), "by": f.By, "comment": f.Comment}
	}
	return map[string]any{
		"id": p.run.ID, "key": p.run.Key, "thread": p.run.Thread, "feedback": feedback,
		"initiator": p.run.Initiator, "on_behalf_of": p.run.OnBehalfOf,
		"started_at": p.run.StartedAt.UTC().Format(time.RFC3339Nano),
	}
}

// evaluation evaluates the parts of one step; the first fault stops the rest.
type evaluation struct {
	ctx   context.Context
	step  *Step // nil: the run's output
	vars  map[string]any
	fault *Failure
}

// fail notes the fault with the place that a person looks for: step and key.
func (v *evaluation) fail(part string, source, err any) {
	where := part
	if v.step != nil {
		where = v.step.Path + ": " + part
	}
	if text := fmt.Sprint(source); source != nil && text != "" {
		where += " " + quote(text)
	}
	v.fault = &Failure{Class: Invalid, Code: "expression", Message: fmt.Sprintf("%s: %v", where, err)}
}

// quoteRunesMax shortens a template in a message.
const quoteRunesMax = 120

func quote(text string) string {
	if utf8.RuneCountInString(text) > quoteRunesMax {
		text = string([]rune(text)[:quoteRunesMax]) + "…"
	}
	return "`" + text + "`"
}

func (v *evaluation) condition(part string, c *expr.Condition) bool {
	yes, err := c.Eval(v.ctx, v.vars)
	if err != nil {
		v.fail(part, c.Source(), err)
	}
	return yes
}

// value evaluates a template to canonical JSON of at most limit bytes (0: the
// limits of canon).
func (v *evaluation) value(part string, t *expr.Value, limit int) json.RawMessage {
	if v.fault != nil {
		return nil
	}
	x, err := t.Eval(v.ctx, v.vars)
	if err != nil {
		v.fail(part, nil, err)
		return nil
	}
	out, err := canon.Marshal(x)
	if err != nil {
		v.fail(part, nil, err)
		return nil
	}
	if limit > 0 && len(out) > limit {
		v.fail(part, nil, fmt.Sprintf("has %d bytes; the limit is %d", len(out), limit))
	}
	return out
}

// params evaluates `with`, which must give a map.
func (v *evaluation) params() json.RawMessage {
	out := v.value("with", v.step.with, 0)
	if v.fault == nil && (len(out) == 0 || out[0] != '{') {
		v.fail("with", v.step.with.Source(), "gives no map of parameters")
	}
	return out
}

func (v *evaluation) text(part string, t *expr.Text, limit int) string {
	if v.fault != nil || t == nil {
		return ""
	}
	s, err := t.Eval(v.ctx, v.vars, nil)
	if err != nil {
		v.fail(part, t.Source(), err)
	} else if len(s) > limit {
		v.fail(part, t.Source(), fmt.Sprintf("has %d bytes; the limit is %d", len(s), limit))
	}
	return s
}

// key evaluates the business key. An empty one would make different actions
// share an idempotency key.
func (v *evaluation) key() string {
	key := v.text("key", v.step.key, keyBytesMax)
	if v.fault == nil && v.step.key != nil && strings.TrimSpace(key) == "" {
		v.fail("key", v.step.key.Source(), "is empty")
	}
	return key
}

// question evaluates what a person is asked.
func (v *evaluation) question() string {
	text := v.text("ask", v.step.question, questionMax)
	if v.fault == nil && strings.TrimSpace(text) == "" {
		v.fail("ask", v.step.question.Source(), "is empty")
	}
	return text
}

func (v *evaluation) sleep() time.Duration {
	text := v.text("sleep", v.step.sleep, keyBytesMax)
	if v.fault != nil {
		return 0
	}
	d, err := sleepFor(text)
	if err != nil {
		v.fail("sleep", v.step.sleep.Source(), err)
	}
	return d
}

// sleepFor reads the duration of a sleep: Go syntax with d and w, not
// negative, at most durationMax.
func sleepFor(text string) (time.Duration, error) {
	d, err := strictyaml.ParseDuration(text)
	if err != nil {
		return 0, err
	}
	if d < 0 || d > durationMax {
		return 0, errors.New("a sleep is from 0s to 366d")
	}
	return d, nil
}
