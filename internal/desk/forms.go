package desk

import (
	"context"
	"fmt"

	"countersign/internal/canon"
	"countersign/internal/identity"
	"countersign/internal/schema"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// FormField is one leaf of a JSON Schema as a form shows it.
type FormField struct {
	Pointer, Name, Label, Hint string
	Type                       string // string, integer, number, boolean, object, array
	Choices                    []string
	Default                    string
	Required, Multiline        bool
	Sealed                     bool // has a sensitive value, which is not shown: left empty, it stays
	MaxLength                  int
}

// formField describes a field of a schema in words.
func formField(f schema.Field) FormField {
	out := FormField{Pointer: f.Pointer, Name: f.Name, Label: f.Title, Hint: f.Description, Type: f.Type, Required: f.Required, Multiline: f.Multiline, MaxLength: f.MaxLength}
	if out.Label == "" {
		out.Label = f.Name
	}
	for _, v := range f.Enum {
		out.Choices = append(out.Choices, plain(v))
	}
	if f.HasDefault {
		out.Default = plain(f.Default)
	}
	out.Hint = joined(joined(out.Hint, bounds(f)), example(f))
	return out
}

// plain is a JSON value as it is typed: text without quotes.
func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, err := canon.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

func bounds(f schema.Field) string {
	switch {
	case f.Minimum != "" && f.Maximum != "":
		return "from " + f.Minimum + " to " + f.Maximum
	case f.Minimum != "":
		return "at least " + f.Minimum
	case f.Maximum != "":
		return "at most " + f.Maximum
	}
	return ""
}

// example is the schema's own first example. A pattern is for machines: it
// stands in the error alone.
func example(f schema.Field) string {
	if len(f.Examples) == 0 {
		return ""
	}
	return "for example " + plain(f.Examples[0])
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// StartForm is the form that starts a workflow.
type StartForm struct {
	Title  string
	Fields []FormField
}

// StartForm returns the form of the version in force. Problems:
// unknown_workflow, forbidden.
func (d *Desk) StartForm(ctx context.Context, p identity.Principal, name string) (out StartForm, err error) {
	if err := require(p, capRunsWrite, "start runs"); err != nil {
		return out, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		w, err := d.defs.WorkflowInForce(ctx, q, Tenant, name)
		if err != nil {
			return err
		}
		out.Title = w.Title
		for _, f := range w.InputSchema().Fields("") {
			out.Fields = append(out.Fields, formField(f))
		}
		return nil
	})
	return out, err
}

// EditForm returns the editable fields of a request, with the values they
// have. Problems: not_found, forbidden.
func (d *Desk) EditForm(ctx context.Context, p identity.Principal, a Approval) (fields []FormField, err error) {
	if err := require(p, capApprovalsRead, "read approval requests"); err != nil {
		return nil, err
	}
	params, err := canon.Value(a.Params)
	if err != nil {
		return nil, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		t, err := d.defs.Tool(ctx, q, Tenant, a.ToolDigest)
		if err != nil {
			return err
		}
		for _, pointer := range a.Editable {
			f, ok := t.Params().Field(pointer)
			if !ok {
				continue
			}
			field := formField(f)
			v, ok := canon.Get(params, pointer)
			if _, field.Sealed = sealed.Of(v); ok && !field.Sealed {
				field.Default = plain(v)
			}
			if field.Sealed {
				field.Required, field.Choices = false, nil
				field.Hint = joined(field.Hint, "sensitive and not shown; left empty, it stays as it is")
			}
			fields = append(fields, field)
		}
		return nil
	})
	return fields, err
}

// WorkflowOf returns a version of a workflow, or the one in force for 0.
// Problems: forbidden, unknown_workflow.
func (d *Desk) WorkflowOf(ctx context.Context, p identity.Principal, name string, version int) (w *workflow.Workflow, err error) {
	if err := require(p, capRunsRead, "read workflows"); err != nil {
		return nil, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		w, err = d.chosen(ctx, q, name, version)
		return err
	})
	return w, err
}

// WorkflowPlan is a workflow as it is drawn.
type WorkflowPlan struct {
	Title string
	Graph workflow.Graph
}

// WorkflowPlan returns the picture of a stored workflow. One that is gone, or
// that this program cannot read, is an empty picture.
func (d *Desk) WorkflowPlan(ctx context.Context, p identity.Principal, digest string) (out WorkflowPlan, err error) {
	if err := require(p, capRunsRead, "read runs"); err != nil {
		return out, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		w, err := d.defs.Workflow(ctx, q, Tenant, digest)
		if err != nil {
			return nil // the run's page says that it is blocked for this
		}
		out = WorkflowPlan{Title: w.Title, Graph: w.Graph()}
		return nil
	})
	return out, err
}
