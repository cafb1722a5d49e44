package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"countersign/internal/canon"
	"countersign/internal/expr"
	"countersign/internal/problem"
	"countersign/internal/sealed"
)

// StatusClass is the default table from an HTTP status to an error class
// (DESIGN section 4). 2xx has none.
func StatusClass(status int) string {
	switch {
	case status >= 200 && status < 300:
		return ""
	case status == 401 || status == 403:
		return ClassDenied
	case status == 408 || status == 425 || status == 429 || status >= 500:
		return ClassTransient
	}
	return ClassPermanent
}

// answer is what came back over any transport, ready to be judged.
type answer struct {
	vars    map[string]any // without body, stdout and result.body where they were cut
	what    string         // "the target answered 503 Service Unavailable"
	class   string         // by the default table
	broken  string         // there is no judgeable answer: why
	natural any            // the output if the tool has no returns
	cut     bool
	over    bool // cut because it is longer than we read
	receipt Receipt
	retry   time.Duration
}

// verdict is what the declared conditions say.
type verdict struct {
	ok, notDone, refused bool
	class                string
	notes                []string // conditions that could not be evaluated
}

// unread says that an expression over an answer could not be evaluated; why only
// where the answer holds nothing sensitive, because why may repeat it.
func (t *Tool) unread(name string, err error) string {
	if len(t.SensitiveOutput) > 0 {
		return name + " could not be evaluated"
	}
	return fmt.Sprintf("%s could not be evaluated (%v)", name, err)
}

func (t *Tool) judge(ctx context.Context, j judgeCode, vars map[string]any) verdict {
	var v verdict
	holds := func(name string, c *expr.Condition) bool {
		if c == nil {
			return false
		}
		yes, err := c.Eval(ctx, vars)
		if err != nil {
			v.notes = append(v.notes, t.unread(name, err))
		}
		return yes && err == nil
	}
	v.ok, v.notDone, v.refused = holds("ok", j.ok), holds("not_done", j.notDone), holds("refused", j.refused)
	for _, c := range j.class {
		if v.class == "" && holds("class "+c.class, c.when) {
			v.class = c.class
		}
	}
	return v
}

// conclude turns an answer to the tool's own request into an outcome. A write
// is confirmed, refused or not done only where exactly one condition says so.
func (t *Tool) conclude(ctx context.Context, j judgeCode, a answer) Outcome {
	o := Outcome{Receipt: a.receipt, RetryAfter: a.retry}
	if a.broken != "" {
		return o.as(t.unproved(), t.unprovedClass(), a.broken)
	}
	v := t.judge(ctx, j, a.vars)
	said := 0
	for _, yes := range []bool{v.ok, v.notDone, v.refused} {
		if yes {
			said++
		}
	}
	switch {
	case !t.Write && !v.ok:
		return o.as(Failed, first(v.class, a.class, ClassPermanent), v.explain(a.what))
	case !t.Write && a.cut:
		return o.as(Failed, map[bool]string{true: ClassPermanent, false: ClassTransient}[a.over], a.what+", but the answer is not all there.")
	case said > 1:
		return o.as(Unknown, ClassUnknown, "The answer matches more than one of ok, not_done and refused: "+a.what+".")
	case v.refused:
		return o.as(Refused, first(v.class, only(a.class, ClassDenied), ClassRefused), v.explain(a.what))
	case v.notDone:
		return o.as(NotDone, first(v.class, only(a.class, ClassDenied), ClassTransient), v.explain(a.what))
	case v.ok:
		return t.confirm(ctx, o, t.code.returns, a)
	}
	return o.as(Unknown, ClassUnknown, v.explain(a.what+", which proves nothing"))
}

// unproved is the status of a call whose answer never came.
func (t *Tool) unproved() Status {
	if t.Write {
		return Unknown
	}
	return Failed
}

func (t *Tool) unprovedClass() string {
	if t.Write {
		return ClassUnknown
	}
	return ClassTransient
}

// confirm makes the output of something that happened. Whatever is wrong with
// the output, it stays confirmed: the effect is never lost.
func (t *Tool) confirm(ctx context.Context, o Outcome, returns *expr.Value, a answer) Outcome {
	o.Status, o.Message = Confirmed, sentence(a.what)
	o.Receipt, o.ExternalRef = a.receipt, a.receipt.ExternalRef
	out, trouble := a.natural, ""
	if returns != nil {
		v, err := returns.Eval(ctx, a.vars)
		if err != nil {
			trouble = t.unread("returns", err)
		} else {
			out = v
		}
	}
	if trouble == "" && a.cut && returns == nil {
		trouble = "the answer is not all there"
	}
	own, err := canon.Marshal(a.vars["params"])
	if at, found := sealed.Foreign(out, own); err != nil || found {
		out, trouble = nil, fmt.Sprintf("its output has at %q the form %q, which is kept for sealed values", at, sealed.Mark)
	}
	if trouble == "" && t.code.output != nil {
		if err := t.code.output.Validate(out); err != nil {
			trouble = "the output does not fit its schema: " + problem.From(err).Error()
		}
	}
	if o.Output, err = canon.Marshal(out); err != nil {
		o.Output, trouble = json.RawMessage("null"), fmt.Sprintf("the output is not JSON (%v)", err)
	}
	if o.ExternalRef == "" {
		o.ExternalRef = reference(out)
		o.Receipt.ExternalRef = o.ExternalRef
	}
	if trouble != "" {
		o.Class, o.Code, o.Message = ClassIncompatible, CodeOutput, sentence(a.what+", but "+trouble)
	}
	return o
}

// reference is how the target calls what it did: the id of its answer.
func reference(out any) string {
	m, ok := out.(map[string]any)
	if !ok {
		return ""
	}
	switch id := m["id"].(type) {
	case string:
		return id[:min(len(id), referenceMax)]
	case float64:
		if s, err := expr.Format(id); err == nil {
			return s
		}
	}
	return ""
}

// referenceMax bounds an external reference.
const referenceMax = 200

func (o Outcome) as(s Status, class, message string) Outcome {
	o.Status, o.Class, o.Message = s, class, sentence(message)
	return o
}

func (o Outcome) coded(code string) Outcome {
	o.Code = code
	return o
}

func (v verdict) explain(what string) string {
	if len(v.notes) == 0 {
		return what
	}
	return what + "; " + strings.Join(v.notes, "; ")
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(s string) string {
	s = strings.TrimRight(strings.TrimSpace(s), ".")
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func first(classes ...string) string {
	for _, c := range classes {
		if c != "" {
			return c
		}
	}
	return ""
}

func only(class, want string) string {
	if class == want {
		return class
	}
	return ""
}
