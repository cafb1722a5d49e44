package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"countersign/internal/audit"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/instance"
	"countersign/internal/problem"
)

type runShowCmd struct {
	place
	ID   string `arg:"" help:"Run id, or key:K."`
	JSON bool   `help:"As JSON."`
}

// runStory is a run with everything that belongs to it.
type runStory struct {
	Run         engine.Run          `json:"run"`
	Steps       []engine.Step       `json:"steps"`
	Approvals   []desk.Approval     `json:"approvals"`
	Effects     []engine.Effect     `json:"effects"`
	Checkpoints []engine.Checkpoint `json:"checkpoints"`
	Audit       []audit.Entry       `json:"audit"`             // oldest first
	Missing     []string            `json:"missing,omitempty"` // what the token may not read, a sentence each
}

func (c runShowCmd) Run(ctx context.Context, e env) error {
	var s runStory
	err := c.beside(ctx, e,
		func(h *client) error { return s.remote(ctx, h, c.ID) },
		func(i *instance.Instance) error { return s.local(ctx, i, c.ID) })
	if err != nil {
		return err
	}
	slices.Reverse(s.Audit)
	if c.JSON {
		return printJSON(e.out, s)
	}
	return s.print(e.out)
}

// remote reads the story over the API. What the token may not read is left
// out, and said.
func (s *runStory) remote(ctx context.Context, h *client, id string) error {
	base := path.Join("/runs", escape(id))
	if err := h.call(ctx, "GET", base, nil, &s.Run); err != nil {
		return err
	}
	steps, effects, checkpoints := whole(&s.Steps), whole(&s.Effects), whole(&s.Checkpoints)
	if err := cmp.Or(steps(ctx, h, base+"/steps"), effects(ctx, h, base+"/effects"), checkpoints(ctx, h, base+"/checkpoints"), paged(&s.Audit)(ctx, h, base+"/audit")); err != nil {
		return err
	}
	err := paged(&s.Approvals)(ctx, h, "/approvals?run="+url.QueryEscape(string(s.Run.ID)))
	if problem.HasCode(err, "missing_scope") {
		s.Missing, err = append(s.Missing, "Approvals are not shown: "+problem.From(err).Message), nil
	}
	return err
}

// whole reads a list that comes whole.
func whole[T any](into *[]T) func(context.Context, *client, string) error {
	return func(ctx context.Context, h *client, path string) error {
		var p desk.Page[T]
		err := h.call(ctx, "GET", path, nil, &p)
		*into = p.Items
		return err
	}
}

// paged reads a list page by page.
func paged[T any](into *[]T) func(context.Context, *client, string) error {
	return func(ctx context.Context, h *client, path string) error {
		return everyPage(into, func(cursor string) (p desk.Page[T], err error) {
			with := "?"
			if strings.Contains(path, "?") {
				with = "&"
			}
			err = h.call(ctx, "GET", path+with+"limit=200&cursor="+url.QueryEscape(cursor), nil, &p)
			return p, err
		})
	}
}

// everyPage gathers all pages of a list.
func everyPage[T any](into *[]T, read func(cursor string) (desk.Page[T], error)) error {
	cursor := ""
	for {
		p, err := read(cursor)
		if err != nil {
			return err
		}
		*into = append(*into, p.Items...)
		if cursor = p.Next; cursor == "" {
			return nil
		}
	}
}

// local reads the story from a data folder.
func (s *runStory) local(ctx context.Context, i *instance.Instance, id string) (err error) {
	if s.Run, err = i.Desk.Run(ctx, operator(), id); err != nil {
		return err
	}
	id = string(s.Run.ID)
	steps, err := i.Desk.Steps(ctx, operator(), id)
	if err != nil {
		return err
	}
	effects, err := i.Desk.RunEffects(ctx, operator(), id)
	if err != nil {
		return err
	}
	checkpoints, err := i.Desk.Checkpoints(ctx, operator(), id)
	if err != nil {
		return err
	}
	s.Steps, s.Effects, s.Checkpoints = steps.Items, effects.Items, checkpoints.Items
	err = everyPage(&s.Approvals, func(cursor string) (desk.Page[desk.Approval], error) {
		return i.Desk.Approvals(ctx, operator(), desk.ApprovalQuery{Run: s.Run.ID, Cursor: cursor, Limit: 200})
	})
	if err != nil {
		return err
	}
	return everyPage(&s.Audit, func(cursor string) (desk.Page[audit.Entry], error) {
		return i.Desk.Entries(ctx, operator(), desk.EntryQuery{Run: id, Cursor: cursor, Limit: 200})
	})
}

// print writes the run, then its parts as tables, then the timeline.
func (s *runStory) print(w io.Writer) error {
	return cmp.Or(
		showRun(w, s.Run, false),
		section(w, "STEP\tPASS\tSTATUS\tATTEMPTS\tSTARTED", s.Steps, func(t engine.Step) string {
			return fmt.Sprintf("%s\t%d\t%s\t%d\t%s", t.Path, t.Pass, t.Status, t.Attempts, t.StartedAt.Format(instantForm))
		}),
		section(w, "APPROVAL\tSTATUS\tREVISION\tSTEP\tWHAT\tDIGEST", s.Approvals, func(a desk.Approval) string {
			return fmt.Sprintf("%s\t%s\t%d\t%s\t%s\t%s", a.ID, a.Status, a.Revision, a.Step, cmp.Or(a.Summary, a.Title), a.Digest)
		}),
		section(w, "EFFECT\tSTEP\tTOOL\tSTATUS\tATTEMPTS\tKEY", s.Effects, func(x engine.Effect) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s", x.ID, x.Path, x.Tool, x.Status, x.Attempts, x.Key)
		}),
		section(w, "WHEN\tWHAT\tABOUT\tBY", s.timeline(), func(m moment) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s", m.at.Format(instantForm), m.what, m.about, m.by)
		}),
		s.printMissing(w),
	)
}

func (s *runStory) printMissing(w io.Writer) error {
	for _, m := range s.Missing {
		if _, err := fmt.Fprintf(w, "\n%s\n", printable(m)); err != nil {
			return err
		}
	}
	return nil
}

// instantForm is how instants stand in tables, in UTC.
const instantForm = "2006-01-02 15:04:05"

// section is a table after a blank line; nothing where there are no rows.
func section[T any](w io.Writer, header string, items []T, row func(T) string) error {
	if len(items) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return table(w, header, items, row)
}

// moment is one line of the timeline.
type moment struct {
	at              time.Time
	what, about, by string
}

// timeline is checkpoints and audit entries in the order they happened; of
// the same instant, checkpoints first.
func (s *runStory) timeline() []moment {
	var all []moment
	for _, c := range s.Checkpoints {
		var ev struct {
			Kind string `json:"kind"`
		}
		if json.Unmarshal(c.Event, &ev) != nil {
			ev.Kind = "unreadable"
		}
		all = append(all, moment{c.CreatedAt, fmt.Sprintf("checkpoint %d: %s", c.Version, strings.ReplaceAll(ev.Kind, "_", " ")), c.Path, maker(c.Creator)})
	}
	for _, e := range s.Audit {
		what := fmt.Sprintf("entry %d: %s", e.Seq, e.Action)
		if e.Outcome != "" {
			what += ", " + e.Outcome
		}
		all = append(all, moment{e.Time, what, e.Subject, e.Actor.Name})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	return all
}

// maker names who made a checkpoint.
func maker(c engine.Creator) string {
	if c.Person != nil {
		return c.Person.Name
	}
	return c.Driver
}
