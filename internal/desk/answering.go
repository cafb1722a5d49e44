package desk

import (
	"context"
	"encoding/json"
	"slices"

	"countersign/internal/approvals"
	"countersign/internal/canon"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// Question is what a run asks people, with all that whoever answers needs.
type Question struct {
	engine.Question
	Workflow  string          `json:"workflow"`
	RunKey    string          `json:"run_key,omitempty"`
	RunStatus string          `json:"run_status"`
	Title     string          `json:"title"` // of the step
	Initiator Party           `json:"initiator"`
	Form      json.RawMessage `json:"form,omitempty"` // the JSON Schema; none when the workflow is gone
	Sensitive []string        `json:"sensitive"`
	Answer    json.RawMessage `json:"answer,omitempty"` // as it is recorded, the sensitive values sealed
	You       bool            `json:"you"`              // the caller may answer it now
	Why       string          `json:"why,omitempty"`    // why not, in a sentence
	Can       []Party         `json:"can"`              // who may answer
	Fields    []FormField     `json:"-"`
}

// OpenQuestions lists what runs ask now and p may answer, the longest open
// first.
func (d *Desk) OpenQuestions(ctx context.Context, p identity.Principal) (page Page[Question], err error) {
	if err := require(p, capRunsRead, "read runs"); err != nil {
		return page, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		page.Items = []Question{}
		mine, err := d.questionsFor(ctx, q, p)
		if err != nil {
			return err
		}
		for _, open := range mine {
			view, err := d.questionView(ctx, q, p, open)
			if err != nil {
				return err
			}
			page.Items = append(page.Items, view)
		}
		return nil
	})
	return page, err
}

// questionsFor are the open questions that p may answer.
func (d *Desk) questionsFor(ctx context.Context, q store.Querier, p identity.Principal) ([]engine.Question, error) {
	all, err := d.engine.OpenQuestions(ctx, q, Tenant)
	return slices.DeleteFunc(all, func(asked engine.Question) bool { return mayAnswer(p, p.Roles, asked) != nil }), err
}

// RunQuestions lists everything a run has asked people, in that order.
// Problems: not_found, forbidden.
func (d *Desk) RunQuestions(ctx context.Context, p identity.Principal, ref string) (page Page[Question], err error) {
	err = d.viewRun(ctx, p, ref, func(ctx context.Context, q store.Querier, run id.Run) error {
		all, err := d.engine.Questions(ctx, q, Tenant, run)
		if err != nil {
			return err
		}
		page.Items = []Question{}
		for _, asked := range all {
			view, err := d.questionView(ctx, q, p, asked)
			if err != nil {
				return err
			}
			page.Items = append(page.Items, view)
		}
		return nil
	})
	return page, err
}

// questionView is a question as p sees it.
func (d *Desk) questionView(ctx context.Context, q store.Querier, p identity.Principal, asked engine.Question) (Question, error) {
	run, err := d.engine.Run(ctx, q, Tenant, asked.Run)
	if err != nil {
		return Question{}, err
	}
	v := Question{Question: asked, Workflow: run.Workflow, RunKey: run.Key, RunStatus: run.Status, Title: asked.Path,
		Initiator: Party{run.Initiator, run.InitiatorName}, Sensitive: []string{}, Can: []Party{}}
	people, err := d.whoAnswers(ctx, q, asked)
	if err != nil {
		return Question{}, err
	}
	for _, one := range people {
		v.Can = append(v.Can, Party{string(one.ID), one.Name})
	}
	if v.You, v.Why = canAnswer(p, run, asked); asked.Status == engine.QuestionAnswered {
		if v.Answer, err = d.answerOf(ctx, q, asked); err != nil {
			return Question{}, err
		}
	}
	return v, v.ask(d.asking(ctx, q, run, asked.Path))
}

// ask fills in the form, unless the workflow is gone.
func (v *Question) ask(step *workflow.Step) (err error) {
	if step == nil {
		return nil
	}
	v.Title, v.Sensitive = step.Title, append(v.Sensitive, step.Sensitive...)
	if v.Form, err = canon.Marshal(step.Form.Source()); err != nil {
		return err
	}
	for _, f := range step.Form.Fields("") {
		field := formField(f)
		if slices.Contains(step.Sensitive, f.Pointer) {
			field.Hint = joined(field.Hint, "sensitive: it is stored encrypted and not shown again")
		}
		v.Fields = append(v.Fields, field)
	}
	return nil
}

// asking is the step that asks; nil when the run's workflow is gone, which the
// run's page says.
func (d *Desk) asking(ctx context.Context, q store.Querier, run engine.Run, path string) *workflow.Step {
	w, err := d.defs.Workflow(ctx, q, Tenant, run.WorkflowDigest)
	if err != nil {
		return nil
	}
	step, ok := w.Step(path)
	if !ok || step.Kind != workflow.Ask {
		return nil
	}
	return step
}

// canAnswer says whether p may answer now, and why not.
func canAnswer(p identity.Principal, run engine.Run, asked engine.Question) (bool, string) {
	switch err := mayAnswer(p, p.Roles, asked); {
	case asked.Status != engine.QuestionOpen, engine.Final(run.Status):
		return false, ""
	case err != nil:
		return false, err.Message
	case run.Blocks(asked.Path):
		return false, "The run is blocked until somebody acts on it."
	}
	return true, ""
}

// answerOf is the recorded answer.
func (d *Desk) answerOf(ctx context.Context, q store.Querier, asked engine.Question) (json.RawMessage, error) {
	steps, err := d.engine.Steps(ctx, q, Tenant, asked.Run)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		if s.Path == asked.Path && s.Pass == asked.Pass {
			return s.Output, nil
		}
	}
	return nil, nil
}

// whoAnswers lists the people who may answer now.
func (d *Desk) whoAnswers(ctx context.Context, q store.Querier, asked engine.Question) (all []approvals.Person, err error) {
	for _, role := range asked.Roles {
		people, err := folk{d.people}.WithRole(ctx, q, Tenant, role)
		if err != nil {
			return nil, err
		}
		for _, p := range people {
			if p.Active && !slices.ContainsFunc(all, func(o approvals.Person) bool { return o.ID == p.ID }) {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// Answer answers a question of a run: what the form describes, with its
// defaults, becomes the output of the step, and the run goes on; the answer,
// its audit entry and the wake-up are one transaction. The same answer once
// more gives the same result. A refused attempt changes nothing; one that was
// refused for what it is, not for how it was typed, leaves an audit entry.
//
// Problems: not_a_person, missing_scope, not_eligible, already_answered (with
// by and at), question_closed, already_finished, cancel_asked, run_blocked,
// clock_suspect, not_found, and what the form refuses.
func (d *Desk) Answer(ctx context.Context, p identity.Principal, ref string, in Answer) (out Question, err error) {
	var run id.Run
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) (err error) {
		if run, err = d.runID(ctx, q, ref); err != nil {
			return err
		}
		asked, err := d.engine.Question(ctx, q, Tenant, run, in.Step, in.Pass)
		if err != nil {
			return err
		}
		in.Pass = asked.Pass
		return refusal(mayAnswer(p, p.Roles, asked))
	})
	if err == nil {
		_, err = d.engine.Answer(ctx, engine.Answer{Tenant: Tenant, Run: run, Path: in.Step, Pass: in.Pass, Value: in.Value, May: d.stillMay(p)}, actor(p))
	}
	if err != nil {
		d.recordRefusal(ctx, p, ref, "run.answer", "", err)
		return Question{}, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		asked, err := d.engine.Question(ctx, q, Tenant, run, in.Step, in.Pass)
		if err != nil {
			return err
		}
		out, err = d.questionView(ctx, q, p, asked)
		return err
	})
	return out, err
}

// stillMay asks, in the transaction of the answer, with the roles of then.
func (d *Desk) stillMay(p identity.Principal) func(context.Context, store.Querier, engine.Question) error {
	return func(ctx context.Context, q store.Querier, asked engine.Question) error {
		who, err := d.people.Person(ctx, q, Tenant, p.Person)
		if err != nil {
			return err
		}
		roles := who.Roles
		if !who.Active {
			roles = nil
		}
		return refusal(mayAnswer(p, roles, asked))
	}
}
