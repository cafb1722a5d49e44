package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/internal/instance"
)

// approvalCmd is deciding from a terminal.
type approvalCmd struct {
	List    approvalListCmd    `cmd:"" help:"List approval requests." example:"console approval list --status pending --server http://127.0.0.1:8080 --token cst_…"`
	Show    approvalShowCmd    `cmd:"" help:"Show one request: everything its page shows." example:"console approval show apr_… --data ./data"`
	Approve approveCmd         `cmd:"" help:"Approve exactly what the digest names." example:"console approval approve apr_… --digest sha256:… --data ./data --as ana@example.org"`
	Reject  rejectCmd          `cmd:"" help:"Reject, with a reason." example:"console approval reject apr_… --digest sha256:… --reason 'Wrong order.' --data ./data --as ana@example.org"`
	Edit    approvalEditCmd    `cmd:"" help:"Change editable fields; makes the next revision." example:"console approval edit apr_… --digest sha256:… --set /amount=40 --data ./data --as ana@example.org"`
	Retract approvalRetractCmd `cmd:"" help:"Take your own approval back while the request waits for others." example:"console approval retract apr_… --reason 'I read the wrong order.' --data ./data --as ana@example.org"`
	Extend  approvalExtendCmd  `cmd:"" help:"Give more time to decide." example:"console approval extend apr_… --by 24h --reason 'It is a holiday.' --data ./data --as ana@example.org"`
	Revoke  approvalRevokeCmd  `cmd:"" help:"Take an approval back before anything was sent." example:"console approval revoke apr_… --reason 'The customer kept it.' --data ./data --as ana@example.org"`
}

type approvalListCmd struct {
	place
	Status string `help:"Only requests of this status."`
	Tool   string `help:"Only requests of this tool."`
	JSON   bool   `help:"As JSON."`
}

func (c approvalListCmd) Run(ctx context.Context, e env) error {
	var page desk.Page[desk.Approval]
	err := c.beside(ctx, e,
		func(h *client) error {
			return h.call(ctx, "GET", "/approvals?status="+escape(c.Status)+"&tool="+escape(c.Tool), nil, &page)
		},
		func(i *instance.Instance) (err error) {
			page, err = i.Desk.Approvals(ctx, operator(), desk.ApprovalQuery{Status: c.Status, Tool: c.Tool})
			return err
		})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, page)
	}
	return table(e.out, "APPROVAL\tSTATUS\tRISK\tWHAT\tBY\tDIGEST", page.Items, func(a desk.Approval) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", a.ID, a.Status, a.Risk, a.Summary, a.Initiator.Name, a.Digest)
	})
}

type approvalShowCmd struct {
	place
	ID   string `arg:"" help:"Approval id."`
	JSON bool   `help:"As JSON."`
}

func (c approvalShowCmd) Run(ctx context.Context, e env) error {
	var a desk.Approval
	err := c.beside(ctx, e,
		func(h *client) error { return h.call(ctx, "GET", path.Join("/approvals", escape(c.ID)), nil, &a) },
		func(i *instance.Instance) (err error) {
			a, err = i.Desk.Approval(ctx, operator(), c.ID)
			return err
		})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, a)
	}
	return showApproval(e.out, a)
}

// showApproval prints a request in the order of its page: what, to what, what
// follows, the parameters, then the agent's words, marked as such.
func showApproval(w io.Writer, a desk.Approval) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  revision %d  %s\n\n%s\n", a.ID, a.Revision, a.Status, a.Summary)
	if a.Alarm != "" {
		fmt.Fprintf(&b, "ALARM:   %s\n", a.Alarm)
	}
	for _, m := range a.Meanwhile {
		fmt.Fprintf(&b, "now:     %s\n", m)
	}
	if a.Eligible.DeadEnd != "" {
		fmt.Fprintf(&b, "nobody can complete it: %s\n", a.Eligible.DeadEnd)
	}
	fmt.Fprintf(&b, "target:  %s\nrisk:    %s\nimpact:  %s\nasked:   by %s", a.Target, a.Risk, a.Impact, a.Initiator.Name)
	if a.OnBehalfOf != "" {
		fmt.Fprintf(&b, " on behalf of %s", a.OnBehalfOf)
	}
	fmt.Fprintf(&b, ", run %s, step %s\n", a.Run, a.Step)
	if len(a.Params) > 0 {
		fmt.Fprintf(&b, "params:  %s\n", a.Params)
	}
	if len(a.Preview) > 0 {
		fmt.Fprintf(&b, "measured effect: %s\n", a.Preview)
	}
	if a.PreviewError != "" {
		fmt.Fprintf(&b, "effect unknown: %s\n", a.PreviewError)
	}
	fmt.Fprintf(&b, "written by %s, not verified: %s\n", a.Initiator.Name, a.Reason)
	for _, g := range a.Groups {
		fmt.Fprintf(&b, "needs:   %d of %s, has %d\n", g.Need, g.Name, g.Have)
	}
	for _, d := range a.Decisions {
		fmt.Fprintf(&b, "%s by %s as %s at %s %s\n", d.Verdict, d.Person.Name, d.Authority, d.DecidedAt.Format("2006-01-02 15:04:05 MST"), d.Comment)
		if !d.RetractedAt.IsZero() {
			fmt.Fprintf(&b, "  taken back at %s\n", d.RetractedAt.Format("2006-01-02 15:04:05 MST"))
		}
	}
	if !a.DecideBy.IsZero() {
		fmt.Fprintf(&b, "decide by %s\n", a.DecideBy.Format("2006-01-02 15:04:05 MST"))
	}
	fmt.Fprintf(&b, "digest:  %s\n", a.Digest)
	_, err := io.WriteString(w, printable(b.String()))
	return err
}

// deciding is what every decision needs.
type deciding struct {
	place
	person
	ID     string `arg:"" help:"Approval id."`
	Digest string `help:"Digest of what you saw; console approval show prints it." required:""`
	JSON   bool   `help:"As JSON."`
}

// decide sends one verdict as the person who acts.
func (d deciding) decide(ctx context.Context, e env, verdict, comment string) error {
	var out desk.Decided
	err := d.as(ctx, e,
		func(h *client) error {
			return h.call(ctx, "POST", path.Join("/approvals", escape(d.ID), "decision"), map[string]any{"verdict": verdict, "digest": d.Digest, "comment": comment}, &out)
		},
		func(i *instance.Instance, p identity.Principal) (err error) {
			out, err = i.Desk.Decide(ctx, p, d.ID, desk.Decide{Verdict: verdict, Digest: d.Digest, Comment: comment})
			return err
		})
	if err != nil {
		return err
	}
	if d.JSON {
		return printJSON(e.out, out)
	}
	_, err = fmt.Fprintf(e.out, "%s: %s; the request is %s\n", d.ID, out.Decision.Verdict, out.Status)
	return err
}

// as acts as a person: with their token on a server, with their password on a
// data folder, beside whoever drives it.
func (d deciding) as(ctx context.Context, e env, remote func(*client) error, local func(*instance.Instance, identity.Principal) error) error {
	return d.beside(ctx, e, remote, func(i *instance.Instance) error {
		p, err := d.principal(ctx, i, e)
		if err != nil {
			return err
		}
		return local(i, p)
	})
}

type approveCmd struct {
	deciding
	Comment string `help:"A remark."`
}

func (c approveCmd) Run(ctx context.Context, e env) error {
	return c.decide(ctx, e, "approve", c.Comment)
}

type rejectCmd struct {
	deciding
	Reason string `help:"Why; the run and the agent are told." required:""`
}

func (c rejectCmd) Run(ctx context.Context, e env) error { return c.decide(ctx, e, "reject", c.Reason) }

type approvalEditCmd struct {
	deciding
	Set     []string `help:"POINTER=VALUE, the value as JSON or as plain text; may be repeated." required:"" sep:"none"`
	Comment string   `help:"Why."`
}

func (c approvalEditCmd) Run(ctx context.Context, e env) error {
	in := desk.Edit{Digest: c.Digest, Comment: c.Comment}
	var wire []map[string]any
	for _, s := range c.Set {
		pointer, value, ok := strings.Cut(s, "=")
		if !ok || !strings.HasPrefix(pointer, "/") {
			return fmt.Errorf("--set is POINTER=VALUE like /amount=40, not %q", s)
		}
		raw := jsonOrText(value)
		in.Edits = append(in.Edits, desk.FieldEdit{Pointer: pointer, Value: raw})
		wire = append(wire, map[string]any{"path": pointer, "value": raw})
	}
	var out desk.Approval
	err := c.as(ctx, e,
		func(h *client) error {
			return h.call(ctx, "POST", path.Join("/approvals", escape(c.ID), "edit"), map[string]any{"digest": c.Digest, "edits": wire, "comment": c.Comment}, &out)
		},
		func(i *instance.Instance, p identity.Principal) (err error) {
			out, err = i.Desk.Edit(ctx, p, c.ID, in)
			return err
		})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, out)
	}
	return showApproval(e.out, out)
}

// jsonOrText takes a value as JSON if it is, else as a string.
func jsonOrText(s string) json.RawMessage {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic("console: encode a string: " + err.Error())
	}
	return raw
}

type approvalRevokeCmd struct {
	place
	person
	ID     string `arg:"" help:"Approval id."`
	Reason string `help:"Why." required:""`
}

func (c approvalRevokeCmd) Run(ctx context.Context, e env) error {
	var out desk.Approval
	err := deciding{place: c.place, person: c.person, ID: c.ID}.as(ctx, e,
		func(h *client) error {
			return h.call(ctx, "POST", path.Join("/approvals", escape(c.ID), "revoke"), map[string]any{"reason": c.Reason}, &out)
		},
		func(i *instance.Instance, p identity.Principal) (err error) {
			out, err = i.Desk.Revoke(ctx, p, c.ID, c.Reason)
			return err
		})
	if err != nil {
		return err
	}
	return showApproval(e.out, out)
}
