package browser

import (
	"encoding/json"
	"fmt"

	"countersign/internal/approvals"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"
)

// executionWords are the heading and the sentence of each state of an effect.
var executionWords = map[string][2]string{
	engine.Prepared:  {"Agreed, waiting to start", "It is checked once more right before it is sent."},
	engine.Sent:      {"Sent, waiting for the answer", "The request is on its way."},
	engine.Confirmed: {"Done, once", "The target confirmed it."},
	engine.Refused:   {"The target refused it", "It did not happen, and will not."},
	engine.NotDone:   {"Not done yet", "It did not happen this time. It is tried again under the same key while the approval holds."},
	engine.Unknown:   {"Nobody knows yet whether it happened", "It was sent and no clear answer came. It is looked up or put before a person, and never sent again blindly."},
	engine.Abandoned: {"Given up", "A person said what to make of it; see below."},
}

// execution is what became of an action that was agreed to.
func (b *Browser) execution(a desk.Approval, f decisionForm, p identity.Principal) *pages.Execution {
	url := address("/approvals/", a.ID)
	state := engine.Prepared
	if a.Effect != nil {
		state = a.Effect.Status
	}
	if a.Kind == approvals.KindDocument {
		x := &pages.Execution{Status: status(a.Status), Title: "Approved", Text: "The run went on with it.", Digest: a.Digest, ReceiptURL: url + "/receipt", RevokeError: f.revoke}
		if a.StartedAt.IsZero() {
			x.Text = "The run has not gone on with it yet."
		}
		b.offerRevoke(x, a, state, f.from, p)
		return x
	}
	words := executionWords[state]
	x := &pages.Execution{Status: status(state), Title: words[0], Text: words[1], Digest: a.Digest, Stages: stages(a, state), ReceiptURL: url + "/receipt", RevokeError: f.revoke}
	if e := a.Effect; e != nil {
		x.Facts = b.ledgerFacts(*e)
		x.Receipt = receipt(*e)
		if e.Message != "" && state != engine.Confirmed {
			x.Text += " " + e.Message
		}
		if state == engine.Unknown {
			x.Next = &parts.Link{Text: "Say what happened", URL: address("/effects/", string(e.ID))}
		}
	}
	b.offerRevoke(x, a, state, f.from, p)
	return x
}

// offerRevoke says whether the approval can still be taken back.
func (b *Browser) offerRevoke(x *pages.Execution, a desk.Approval, state, from string, p identity.Principal) {
	if state != engine.Prepared || !a.StartedAt.IsZero() || engine.Final(a.RunStatus) {
		if a.Effect != nil && !a.Effect.SentAt.IsZero() {
			x.RevokeNote = "It started on " + b.at(a.Effect.SentAt).Absolute + "; it can no longer be taken back."
		}
		return
	}
	voted := false
	for _, d := range a.Decisions {
		voted = voted || d.Person.ID == string(p.Person) && d.Revision == a.Revision && d.RetractedAt.IsZero()
	}
	if voted || desk.May(p, "operate") {
		x.Revoke, x.RevokeNote = withQuery(address("/approvals/", a.ID)+"/revoke", "from", from), "It has not started: you can still take it back."
	}
}

func (b *Browser) ledgerFacts(e engine.Effect) []parts.Fact {
	facts := []parts.Fact{{Name: "Idempotency key", Text: e.Key, Mono: true}, {Name: "Attempts", Text: fmt.Sprint(e.Attempts)}}
	if !e.SentAt.IsZero() {
		facts = append(facts, parts.Fact{Name: "Sent", Time: b.at(e.SentAt)})
	}
	if !e.ResolvedAt.IsZero() {
		facts = append(facts, parts.Fact{Name: "Settled", Time: b.at(e.ResolvedAt)})
	}
	if e.RequestDigest != "" {
		facts = append(facts, parts.Fact{Name: "Request that was sent", Digest: e.RequestDigest})
	}
	if e.Evidence != "" {
		facts = append(facts, parts.Fact{Name: "Evidence", Text: e.Evidence})
	}
	return facts
}

// receipt is what the outside answered.
func receipt(e engine.Effect) *pages.Receipt {
	if len(e.Receipt) == 0 || string(e.Receipt) == "null" {
		return nil
	}
	var r struct {
		Status     int             `json:"status"`
		Body       json.RawMessage `json:"body"`
		Incomplete bool            `json:"incomplete"`
	}
	if json.Unmarshal(e.Receipt, &r) != nil {
		return &pages.Receipt{Body: document("Answer", e.Receipt)}
	}
	out := &pages.Receipt{Body: document("Answer", r.Body), Incomplete: r.Incomplete}
	if e.ExternalRef != "" {
		out.Facts = append(out.Facts, parts.Fact{Name: "The target calls it", Text: e.ExternalRef, Mono: true})
	}
	if r.Status > 0 { // a program that was killed has none
		out.Facts = append(out.Facts, parts.Fact{Name: "Status", Text: fmt.Sprint(r.Status)})
	}
	return out
}

// stages is how far an agreed action is.
func stages(a desk.Approval, state string) []parts.Step {
	decided := "decided"
	if a.Status == "allowed" {
		decided = "allowed by the policy"
	}
	out := []parts.Step{{Title: decided, State: "done"}, {Title: "checked again", State: "now"}, {Title: "sent", State: "todo"}, {Title: "answered", State: "todo"}}
	set := func(states ...string) {
		for i, s := range states {
			out[i+1].State = s
		}
	}
	switch state {
	case engine.Sent:
		set("done", "now", "todo")
	case engine.Confirmed:
		set("done", "done", "done")
	case engine.Refused, engine.Abandoned:
		set("done", "done", "bad")
	case engine.Unknown:
		set("done", "done", "unknown")
	}
	return out
}

// ended is how a request ended without being carried out.
func (b *Browser) ended(a desk.Approval) *pages.Ended {
	e := &pages.Ended{Status: status(a.Status), Reason: a.ClosedWhy, Next: &parts.Link{Text: "Open the run", URL: address("/runs/", a.Run)}}
	by := ""
	if a.ClosedBy != "" {
		by = " by " + a.ClosedBy
	}
	switch a.Status {
	case "rejected":
		e.Title, e.Text = "Rejected"+by, "Nothing was sent. The run, and whoever asked, were told why."
	case "expired":
		e.Title, e.Text = "Expired", "Nobody decided, or it was not started, in time. Nothing was sent; silence is never consent."
	case "withdrawn":
		e.Title, e.Text = "Withdrawn"+by, "Nobody needs to decide it any more. Nothing was sent."
	case "denied":
		e.Title, e.Text = "Denied by the policy", "The rule "+a.Rule+" does not let it happen. Nothing was sent."
	}
	if !a.ClosedAt.IsZero() {
		e.Facts = append(e.Facts, parts.Fact{Name: "When", Time: b.at(a.ClosedAt)})
	}
	return e
}

// blocked says what stops an agreed action, and what to do.
func (b *Browser) blocked(a desk.Approval) *pages.Ended {
	return &pages.Ended{Status: parts.Status{Code: "blocked", Word: "blocked"}, Title: "Blocked: nothing was sent", Text: a.RunReason,
		Next: &parts.Link{Text: "Open the run", URL: address("/runs/", a.Run)}}
}
