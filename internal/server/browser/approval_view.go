package browser

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"
)

// approvalView is a request in whatever state it is.
func (b *Browser) approvalView(a desk.Approval, f decisionForm, p identity.Principal) pages.ApprovalView {
	url := address("/approvals/", a.ID)
	form := func(part string) string { return withQuery(url+part, "from", f.from) }
	v := pages.ApprovalView{
		ID: a.ID, URL: url, Status: status(a.Status), Revision: a.Revision, Clocks: b.clocks(a), Banner: f.banner, Diff: f.diff,
		Document: a.Kind == approvals.KindDocument, Sentence: heading(a), Target: a.Target, Who: a.Initiator.Name, OnBehalf: a.OnBehalfOf, Unbound: a.OnBehalfOf != "",
		Run: parts.Link{Text: a.Workflow + " " + shortID(a.Run), URL: address("/runs/", a.Run)}, Step: a.Step, Asked: b.at(a.CreatedAt), Attempts: a.PreviousRefusal,
		Risk: a.Risk, Impact: a.Impact, Reversible: a.Undo, Irreversible: !a.Reversible, Preview: b.preview(a), Params: params(a, f.armed == a.Digest), Request: document("The request as it will be sent; secrets by name", a.Request),
		Reason: a.Reason, ReasonAuthor: a.Initiator.Name, Policy: policy(a), Digest: a.Digest, ParamsHash: a.ParamsHash, Verify: "console approval show " + a.ID + " --data DIR",
		SubjectURL: url + "/subject", Timeline: b.timeline(a), Flow: flow(a), Comment: &pages.CommentForm{Action: form("/comments"), Value: f.comment, Error: f.remark},
	}
	if f.from != "" {
		v.Along = []parts.Hidden{{Name: "from", Value: f.from}}
	}
	sensitive(v.Params.Rows, a, f, p)
	if a.Tool != "" {
		v.Tool = parts.Link{Text: fmt.Sprintf("%s %d", a.Tool, a.ToolVersion), URL: fmt.Sprintf("/definitions/tool/%s/%d", a.Tool, a.ToolVersion)}
	}
	if a.Precondition != "" {
		v.Checks = []pages.Check{{Text: a.Precondition, Tone: map[bool]string{true: "good", false: "bad"}[a.PreconditionMet], At: b.at(a.PreconditionAt)}}
	}
	for _, m := range a.Meanwhile {
		v.Checks = append(v.Checks, pages.Check{Text: m, Tone: "warn", At: b.at(now())})
	}
	if f.banner != nil {
		v.Draft = f.reason
	} else if a.Why != "" && a.Status == "pending" && a.Revision > 1 {
		v.Banner = &parts.Notice{Tone: "info", Title: fmt.Sprintf("This is revision %d", a.Revision), Text: a.Why}
		v.Diff = diffValues("What changed", fmt.Sprintf("revision %d", a.Revision-1), a.Changes, a.ParamLabels)
	}
	if a.Alarm != "" && f.banner == nil {
		v.Banner = &parts.Notice{Tone: "bad", Title: "The record of this request was changed", Text: a.Alarm}
	}
	switch a.Status {
	case "pending":
		v.Act, v.Reconsider = act(a, f), reconsider(a, f, p)
	case "approved", "allowed":
		v.Execution = b.execution(a, f, p)
	default:
		v.Ended = b.ended(a)
	}
	if a.RunStatus == engine.Blocked && a.Status != "pending" && (a.Effect == nil || a.Effect.Status != engine.Unknown) && a.Outcome != engine.Confirmed {
		v.Ended = b.blocked(a)
	}
	return v
}

func (b *Browser) clocks(a desk.Approval) []parts.Clock {
	var out []parts.Clock
	if a.Status == "pending" && !a.DecideBy.IsZero() {
		left := a.DecideBy.Sub(now())
		out = append(out, parts.Clock{Label: "Decide by", Time: b.at(a.DecideBy), Urgent: left > 0 && left < time.Hour, Passed: left <= 0, Ticks: true})
	}
	switch {
	case !a.ExecuteBy.IsZero() && a.StartedAt.IsZero():
		left := a.ExecuteBy.Sub(now())
		out = append(out, parts.Clock{Label: "Start by", Time: b.at(a.ExecuteBy), Urgent: left > 0 && left < 15*time.Minute, Passed: left <= 0, Ticks: true})
	case a.ExecuteWithin != "" && a.Status == "pending":
		out = append(out, parts.Clock{Label: "Start by", Time: parts.Time{Relative: within(a.ExecuteWithin), Absolute: within(a.ExecuteWithin)}})
	}
	return out
}

func within(s string) string {
	d, err := time.ParseDuration(s)
	if err != nil {
		return s + " after approval"
	}
	return parts.Distance(d) + " after approval"
}

func (b *Browser) preview(a desk.Approval) *pages.Preview {
	if len(a.Preview) == 0 && a.PreviewError == "" {
		return nil
	}
	return &pages.Preview{Failed: a.PreviewError, At: b.at(a.PreviewAt), Values: parts.Values{Caption: "Measured at the target", Short: true, Rows: labelled(leaves(a.Preview, ""), a.PreviewLabels)}}
}

func policy(a desk.Approval) pages.Policy {
	p := pages.Policy{Rule: a.Rule, NoRule: a.Rule == approvals.RuleNone, Faulty: a.Rule == approvals.RuleError, DeadEnd: a.Eligible.DeadEnd}
	if a.Policy != "" {
		p.Name = parts.Link{Text: fmt.Sprintf("%s %d", a.Policy, a.PolicyVersion), URL: fmt.Sprintf("/definitions/policy/%s/%d", a.Policy, a.PolicyVersion)}
	}
	for _, g := range a.Groups {
		group := pages.Group{Name: g.Name, Need: g.Need, Have: g.Have}
		for _, d := range a.Decisions {
			if d.Revision == a.Revision && d.Verdict == "approve" && d.RetractedAt.IsZero() && slices.Contains(d.Groups, g.Name) && len(group.By) < g.Need {
				group.By = append(group.By, d.Person.Name)
			}
		}
		p.Groups = append(p.Groups, group)
	}
	for _, t := range a.PolicyTrace {
		if !t.Matched {
			p.Others = append(p.Others, pages.Rule{Name: t.Rule, Why: t.Why})
		}
	}
	for _, c := range a.Eligible.Can {
		p.Can = append(p.Can, c.Name)
	}
	for _, x := range a.Eligible.Excluded {
		p.Out = append(p.Out, pages.Excluded{Name: x.Name, Why: x.Why})
	}
	return p
}

// oneWord is a first word that can stand on a button.
var oneWord = regexp.MustCompile(`^\p{L}{1,20}$`)

// rejectPresets are reasons people give most.
var rejectPresets = []string{"Wrong target.", "Wrong amount or content.", "Not needed any more.", "I need to know more first."}

func act(a desk.Approval, f decisionForm) *pages.Act {
	form := func(part string, more ...string) string {
		return withQuery(address("/approvals/", a.ID)+part, append(more, "from", f.from)...)
	}
	v := &pages.Act{May: a.Eligible.You, Digest: a.Digest, Scope: fmt.Sprintf("Approves revision %d of this request, exactly as shown above, and nothing else.", a.Revision),
		Approve: "Approve", Reject: "Reject", Armed: f.armed == a.Digest && a.Eligible.You, Disarm: form(""), Decide: form("/decision"),
		Presets: rejectPresets, Reason: f.reason, ReasonError: f.fault}
	if f.again != "" {
		v.Reason, v.ReasonError = "", ""
	}
	if verb, _, ok := strings.Cut(heading(a), " "); ok && a.Kind == approvals.KindAction && oneWord.MatchString(verb) {
		v.Approve, v.Reject = "Approve "+strings.ToLower(verb), "Reject "+strings.ToLower(verb)
	}
	if len(a.Editable) > 0 && a.Eligible.You {
		v.Edit = form("/edit")
	}
	if !a.Eligible.You {
		v.WhyNot = "You cannot decide this"
		if a.Eligible.Why != "" {
			v.WhyNot = "You cannot decide this: " + strings.TrimSuffix(a.Eligible.Why, ".") + "."
		}
		for _, c := range a.Eligible.Can {
			v.WhoCan = append(v.WhoCan, c.Name)
		}
	}
	if f.banner != nil {
		v.Reason = ""
	}
	return v
}

func (b *Browser) timeline(a desk.Approval) []parts.Moment {
	all := slices.Clone(a.Timeline)
	if a.Effect != nil && !a.Effect.SentAt.IsZero() {
		all = append(all, desk.Moment{At: a.Effect.SentAt, What: "sent"})
		if !a.Effect.ResolvedAt.IsZero() {
			all = append(all, desk.Moment{At: a.Effect.ResolvedAt, Who: a.Effect.ResolvedBy, What: status(a.Effect.Status).Word, Note: a.Effect.Message})
		}
	}
	slices.SortStableFunc(all, func(a, b desk.Moment) int { return a.At.Compare(b.At) })
	out := []parts.Moment{}
	for _, m := range all {
		out = append(out, parts.Moment{Time: b.at(m.At), Who: m.Who, What: m.What, Note: m.Note})
	}
	return out
}

// flow is how far the groups are.
func flow(a desk.Approval) []parts.Step {
	var out []parts.Step
	for _, g := range a.Groups {
		s := parts.Step{Title: fmt.Sprintf("%s, %d of %d", g.Name, g.Have, g.Need), State: "todo"}
		switch {
		case g.Have >= g.Need:
			s.State = "done"
		case a.Status == "pending":
			s.State = "now"
		}
		out = append(out, s)
	}
	return out
}
