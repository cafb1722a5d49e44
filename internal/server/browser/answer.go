package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// answer is POST /runs/{id}/answers: step, pass, and the fields of the form.
func (b *Browser) answer(c echo.Context) error {
	pass, err := strconv.Atoi(c.FormValue("pass"))
	if err != nil || pass < 1 {
		return problem.New(problem.Malformed, "malformed", "The form lacks the question it answers. Open the run again.")
	}
	q, err := b.question(c, c.FormValue("step"), pass)
	if err != nil {
		return err
	}
	raw, err := typedAnswer(c, q)
	if err != nil {
		return err
	}
	_, err = b.desk.Answer(c.Request().Context(), who(c), c.Param("id"), desk.Answer{Step: q.Path, Pass: q.Pass, Value: raw})
	if p := problem.From(err); p != nil {
		if p.Kind == problem.Internal || p.Kind == problem.NotFound || p.Kind == problem.Forbidden {
			return err
		}
		return b.runPage(c, edge.Status(p), refused{question: questionAnchor(q), answer: p, typed: raw})
	}
	say(c, "good", "Answered", "The run goes on with it.")
	return see(c, address("/runs/", c.Param("id")))
}

// question is what the run asked at a step in a pass.
func (b *Browser) question(c echo.Context, step string, pass int) (desk.Question, error) {
	all, err := b.desk.RunQuestions(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return desk.Question{}, err
	}
	for _, q := range all.Items {
		if q.Path == step && q.Pass == pass {
			return q, nil
		}
	}
	return desk.Question{}, problem.New(problem.NotFound, "not_found", "The run has asked no such question.")
}

// typedAnswer is the answer that the fields of the form give.
func typedAnswer(c echo.Context, q desk.Question) (json.RawMessage, error) {
	answer := map[string]json.RawMessage{}
	for _, f := range q.Fields {
		if raw := value(f, c.FormValue(f.Pointer)); raw != nil {
			answer[f.Name] = raw
		}
	}
	return canon.Marshal(answer)
}

func questionAnchor(q desk.Question) string { return fmt.Sprintf("ask-%s-%d", q.Path, q.Pass) }

func questionURL(q desk.Question) string {
	return address("/runs/", string(q.Run)) + "#" + questionAnchor(q)
}

// asking is a question as a run's page shows it; nil for one that is closed
// and that nobody is answering.
func (b *Browser) asking(c echo.Context, q desk.Question, r refused) *pages.Asking {
	mine := r.answer != nil && r.question == questionAnchor(q)
	if q.Status != engine.QuestionOpen && !mine {
		return nil
	}
	v := &pages.Asking{Anchor: questionAnchor(q), Title: q.Title, Text: q.Text, Until: b.at(q.AnswerBy), WhyNot: q.Why}
	if mine {
		v.Error = &parts.Notice{Tone: "bad", Title: r.answer.Message}
		if len(r.answer.Fields) > 0 {
			v.Error.Title, v.Error.Lines = "Something below needs another look; nothing was recorded", elsewhere(r.answer, q.Fields)
		}
	}
	for _, p := range q.Can {
		v.WhoCan = append(v.WhoCan, p.Name)
	}
	if !q.You {
		if mine {
			v.Typed, v.WhoCan = document("What you typed", r.typed), nil
		}
		return v
	}
	v.Answer, v.WhoCan = address("/runs/", string(q.Run))+"/answers", nil
	v.Hidden = []parts.Hidden{{Name: "step", Value: q.Path}, {Name: "pass", Value: strconv.Itoa(q.Pass)}}
	v.Fields = answerFields(c, q, mine, r.answer)
	v.Keep = len(q.Sensitive) == 0
	return v
}

// elsewhere are the faults that are not those of one field.
func elsewhere(p *problem.Error, fields []desk.FormField) (lines []string) {
	for _, f := range p.Fields {
		if !slices.ContainsFunc(fields, func(x desk.FormField) bool { return x.Pointer == f.Pointer }) {
			lines = append(lines, strings.TrimPrefix(f.Pointer+": "+f.Message, ": "))
		}
	}
	return lines
}

// answerFields are the inputs of a question, with what was typed into them.
func answerFields(c echo.Context, q desk.Question, typedIn bool, fault *problem.Error) (fields []parts.Field) {
	for _, f := range q.Fields {
		v, wrong := f.Default, ""
		if typedIn {
			v, wrong = typed(c, f), faultAt(fault, f.Pointer)
		}
		fields = append(fields, schemaField(f, v, wrong))
	}
	return fields
}

// questionNote says what a step asked and who answered; empty for other steps.
func questionNote(all []desk.Question, t engine.Step) string {
	for _, q := range all {
		switch {
		case q.Path != t.Path || q.Pass != t.Pass:
		case q.AnsweredBy != nil:
			return fmt.Sprintf("Asked: %s Answered by %s.", q.Text, q.AnsweredBy.Name)
		default:
			return "Asked: " + q.Text
		}
	}
	return ""
}

// questionRow is a question in the list of what waits for a person.
func (b *Browser) questionRow(q desk.Question) parts.QueueRow {
	row := parts.QueueRow{ID: string(q.Run) + " " + questionAnchor(q), URL: questionURL(q), Title: q.Text, By: q.Initiator.Name, Tags: []string{"question"}}
	if q.AnswerBy.IsZero() {
		row.LeftTime = b.at(q.AskedAt)
		row.Left = "asked " + row.LeftTime.Relative
		return row
	}
	b.until(&row, q.AnswerBy)
	return row
}
