package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"countersign/internal/desk"
	"countersign/internal/instance"
)

// runAnswerCmd answers what a run asks people, or shows what it asks.
type runAnswerCmd struct {
	place
	person
	crashing
	ID     string   `arg:"" help:"Run id, or key:K."`
	Step   string   `help:"Path of the step that asks." required:""`
	Pass   int      `help:"Which time round." default:"0" placeholder:"the last"`
	Set    []string `help:"FIELD=VALUE, the value as JSON or as plain text; may be repeated." sep:"none"`
	Answer string   `help:"The whole answer: JSON, a file of JSON, or - for standard input. Without it and without --set, the question is shown."`
	JSON   bool     `help:"As JSON."`
}

func (c runAnswerCmd) Run(ctx context.Context, e env) error {
	answer, err := c.answer(e)
	if err != nil {
		return err
	}
	if answer == nil {
		return c.show(ctx, e)
	}
	q, err := c.give(ctx, e, answer)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, q)
	}
	_, err = fmt.Fprintf(e.out, "%s: %s by %s; the run goes on where it is driven\n", q.Path, q.Status, printable(q.AnsweredBy.Name))
	return err
}

// answer is what was given; nil: nothing.
func (c runAnswerCmd) answer(e env) (json.RawMessage, error) {
	switch {
	case c.Answer != "" && len(c.Set) > 0:
		return nil, errors.New("give the answer by --set or as --answer, not both")
	case c.Answer == "-" && c.PasswordStdin:
		return nil, errors.New("standard input is either the answer or the password: give the answer as a file")
	case c.Answer == "-":
		return io.ReadAll(io.LimitReader(e.in, answerBytesMax))
	case c.Answer != "":
		return jsonOrFile(c.Answer)
	case len(c.Set) == 0:
		return nil, nil
	}
	fields := map[string]json.RawMessage{}
	for _, s := range c.Set {
		name, value, ok := strings.Cut(s, "=")
		if _, twice := fields[name]; !ok || name == "" || twice {
			return nil, fmt.Errorf("--set is FIELD=VALUE like amount=40, each field once, not %q", s)
		}
		fields[name] = jsonOrText(value)
	}
	return json.Marshal(fields)
}

// give sends the answer as the person who acts.
func (c runAnswerCmd) give(ctx context.Context, e env, answer json.RawMessage) (q desk.Question, err error) {
	if err := c.check(); err != nil {
		return q, err
	}
	hook, err := c.hook(e)
	if err != nil {
		return q, err
	}
	if c.Server != "" {
		if hook != nil {
			return q, errors.New("--crash-at is only for --data: it ends this process")
		}
		body := map[string]any{"step": c.Step, "answer": answer}
		if c.Pass > 0 {
			body["pass"] = c.Pass
		}
		return q, c.client().call(ctx, "POST", path.Join("/runs", escape(c.ID), "answers"), body, &q)
	}
	i, err := c.folder(ctx, false, hook, quiet(e))
	if err != nil {
		return q, err
	}
	defer i.Close()
	p, err := c.principal(ctx, i, e)
	if err != nil {
		return q, err
	}
	return i.Desk.Answer(ctx, p, c.ID, desk.Answer{Step: c.Step, Pass: c.Pass, Value: answer})
}

// show prints the question and the form of its answer.
func (c runAnswerCmd) show(ctx context.Context, e env) error {
	var page desk.Page[desk.Question]
	err := c.beside(ctx, e,
		func(h *client) error {
			return h.call(ctx, "GET", path.Join("/runs", escape(c.ID), "answers"), nil, &page)
		},
		func(i *instance.Instance) (err error) {
			page, err = i.Desk.RunQuestions(ctx, operator(), c.ID)
			return err
		})
	if err != nil {
		return err
	}
	var found *desk.Question
	for i, q := range page.Items {
		if q.Path == c.Step && (c.Pass == 0 || q.Pass == c.Pass) {
			found = &page.Items[i]
		}
	}
	switch {
	case found == nil:
		return fmt.Errorf("the run has asked nothing at %s", c.Step)
	case c.JSON:
		return printJSON(e.out, found)
	}
	return showQuestion(e.out, *found)
}

func showQuestion(w io.Writer, q desk.Question) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s, time %d  %s\n\n%s\n", q.Run, q.Path, q.Pass, q.Status, q.Text)
	fmt.Fprintf(&b, "role:   %s\n", strings.Join(q.Roles, " or "))
	if !q.AnswerBy.IsZero() {
		fmt.Fprintf(&b, "until:  %s\n", q.AnswerBy.Format(instantForm))
	}
	if q.AnsweredBy != nil {
		fmt.Fprintf(&b, "answer: %s, by %s\n", q.Answer, q.AnsweredBy.Name)
	}
	fmt.Fprintf(&b, "form:   %s\n", q.Form)
	_, err := io.WriteString(w, printable(b.String()))
	return err
}
