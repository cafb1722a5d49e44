package gallery

import (
	"strings"

	"countersign/web/templates/pages"
	"countersign/web/templates/parts"
)

const report = "# Week 49\n\nCheckout latency fell from 840 ms to 610 ms at P95 after the index moved.\nTwo refunds were sent twice last week; the rule about order 8702 is now in force.\n\n## Incidents\n\n- Search, disk full, 41 minutes, nobody paged.\n- Mailer queue, 3 h late, found by a customer.\n\n## Next\n\n1. Move the warehouse load to 04:00.\n2. Rotate the mailer's token.\n3. Ask finance whether refunds over 500 EUR need two people.\n"

func params() parts.Values {
	return parts.Values{Caption: "Parameters of revision 2", Against: "revision 1",
		Compare: []parts.Link{{Text: "revision 1"}, {Text: "last executed call", URL: "?against=last"}, {Text: "defaults", URL: "?against=default"}},
		Rows: []parts.Value{
			{Name: "order_id", Pointer: "/order_id", Title: "Order", Type: "text", Text: "8841", Origin: "input.order_id", CopyURL: "/approvals/apr_71/value?path=/order_id"},
			{Name: "amount", Pointer: "/amount", Title: "Amount", Hint: "In the smallest unit of the currency", Type: "integer", Text: "124000", Old: "142000", Reading: "1240.00 EUR", OldReading: "1420.00 EUR", Change: "changed", Origin: "edited by Ben Okafor", CopyURL: "/approvals/apr_71/value?path=/amount"},
			{Name: "currency", Pointer: "/currency", Title: "Currency", Hint: "Of the order", Type: "text", Text: "EUR", Origin: "steps.order.output.currency"},
			{Name: "note", Pointer: "/note", Type: "text", Text: "Refund for order 8841", Origin: "workflow", CopyURL: "/approvals/apr_71/value?path=/note"},
			{Name: "account", Pointer: "/account", Type: "integer", Text: "2916334247900527532", Origin: "steps.order.output.account"},
			{Name: "card_ref", Pointer: "/card_ref", Type: "text", Masked: true, Fingerprint: "7c1e40d9b2f1", UnmaskURL: "#", Origin: "steps.order.output.card_ref"},
		}}
}

func policy() pages.Policy {
	return pages.Policy{Name: parts.Link{Text: "default 3", URL: "/definitions/policy/default/3"}, Rule: "large-refunds",
		Groups: []pages.Group{{Name: "finance", Need: 2, Have: 1, By: []string{"Ben Okafor"}}},
		Can:    []string{"Ana Ruiz", "Lin Wei"},
		Out:    []pages.Excluded{{Name: "Mara Kline", Why: "asked for it"}, {Name: "Ben Okafor", Why: "has decided already"}},
		Others: []pages.Rule{{Name: "small-refunds", Why: "params.amount <= 2000 was false: 124000"}, {Name: "refunds", Why: "comes after the rule that applies"}, {Name: "restarts", Why: "tool is shop.refund"}}}
}

func pending() pages.ApprovalView {
	return pages.ApprovalView{
		Page: frame("Refund 1,240.00 EUR on order 8841", "/inbox"), Queue: queue("apr_71"), Back: parts.Link{Text: "For me", URL: "/inbox"},
		ID: "apr_71", URL: "/approvals/apr_71", Status: parts.Status{Code: "pending", Word: "Waits for you"}, Revision: 2,
		Revisions: []pages.Revision{{Number: 1, URL: "/approvals/apr_71?rev=1", Note: "as asked"}, {Number: 2, URL: "/approvals/apr_71", Note: "edited by Ben Okafor: amount", Current: true, Latest: true}},
		Clocks: []parts.Clock{
			{Label: "Decide by", Time: soon, Urgent: true, Ticks: false},
			{Label: "Start by", Time: parts.Time{Absolute: "1 h after approval"}}},
		Sentence: "Refund 1,240.00 EUR on order 8841", Tool: parts.Link{Text: "shop.refund 1", URL: "/definitions/tool/shop.refund/1"}, Target: "order 8841",
		Who: "billing-agent", OnBehalf: "Mara Kline", Run: parts.Link{Text: "refund-8841", URL: "/runs/run_71"}, Step: "refund", Asked: minutes,
		Risk: "high", RiskWhy: "the tool's author says so", Impact: "Money leaves the account at once.", Reversible: "Can be undone with shop.cancel_refund, until the bank has settled it.",
		Checks: []pages.Check{{Text: "Order 8841 is paid; 1,420.00 EUR can be refunded.", Tone: "good", At: minutes}},
		Preview: &pages.Preview{At: minutes, Values: parts.Values{Caption: "What the target says would happen", Short: true, Rows: []parts.Value{
			{Name: "balance after", Type: "integer", Text: "18000", Origin: "preview"}, {Name: "customer is told", Type: "yes or no", Text: "true", Origin: "preview"}}}},
		Params:  params(),
		Request: &parts.JSON{Title: "The request as it will be sent", Text: "POST https://shop.example/refunds\nAuthorization: Bearer ${secret.SHOP_TOKEN}\nIdempotency-Key: ik_4d1f\n\n{\"amount\":124000,\"currency\":\"EUR\",\"note\":\"Refund for order 8841\",\"order_id\":\"8841\"}", CopyURL: "/approvals/apr_71/subject"},
		Reason:  "The parcel was lost twice. The customer asked for the money back on 28 November and the carrier has confirmed the loss in writing.", ReasonAuthor: "billing-agent",
		Policy: policy(), Digest: digest1, ParamsHash: digest2, Verify: "console approval show apr_71 --verify", SubjectURL: "/approvals/apr_71/subject",
		Act: &pages.Act{May: true, Digest: digest1, Scope: "Decides revision 2 of this request and nothing else. You would be the second of two.",
			Approve: "Approve refund", Reject: "Reject refund", Disarm: "/approvals/apr_71", Decide: "/approvals/apr_71/decision", Edit: "/approvals/apr_71/edit",
			Presets: []string{"The amount is wrong", "The wrong object", "Not needed any more", "I need to know more first"}},
		Flow: []parts.Step{{Title: "Asked", State: "done", Time: minutes}, {Title: "Finance, 1 of 2", State: "done", Note: "Ben Okafor"}, {Title: "Finance, 2 of 2", State: "now", Note: "you or Lin Wei"}, {Title: "Checked again and sent", State: "todo"}},
		Timeline: []parts.Moment{
			{Who: "billing-agent", What: "asked, revision 1", Time: hours},
			{Who: "Ben Okafor", What: "read revision 1", Time: minutes},
			{Who: "Ben Okafor", What: "saved revision 2: amount 142000 → 124000", Note: "Shipping is not refunded for this tariff.", Time: minutes, Entry: &parts.Link{Text: "entry 18,401", URL: "/audit/entries/ent_18401"}},
			{Who: "Ben Okafor", What: "approved revision 2", Tone: "good", Time: minutes, Entry: &parts.Link{Text: "entry 18,402", URL: "/audit/entries/ent_18402"}}},
		Comment: &pages.CommentForm{Action: "/approvals/apr_71/comments"},
	}
}

// changedView is pending() with a change.
func changedView(change func(*pages.ApprovalView)) pages.ApprovalView {
	v := pending()
	change(&v)
	return v
}

func stages(sent, outcome string) []parts.Step {
	return []parts.Step{{Title: "Approved", State: "done", Note: "Ben Okafor, Ana Ruiz"}, {Title: "Checked again", State: sent}, {Title: "Sent", State: sent}, {Title: "Outcome", State: outcome}}
}

func executed(code, word string, e pages.Execution) pages.ApprovalView {
	return changedView(func(v *pages.ApprovalView) {
		v.Status, v.Act, v.Execution = parts.Status{Code: code, Word: word}, nil, &e
		v.Clocks = []parts.Clock{{Label: "Start by", Time: later}}
		v.Policy.Groups[0].Have, v.Policy.Groups[0].By, v.Policy.Can = 2, []string{"Ben Okafor", "Ana Ruiz"}, nil
		v.Flow[2] = parts.Step{Title: "Finance, 2 of 2", State: "done", Note: "Ana Ruiz"}
		e.Status = v.Status
		v.Execution.Status = v.Status
	})
}

func endedView(code, word string, e pages.Ended) pages.ApprovalView {
	return changedView(func(v *pages.ApprovalView) {
		e.Status = parts.Status{Code: code, Word: word}
		v.Status, v.Act, v.Ended, v.Clocks = e.Status, nil, &e, nil
	})
}

func approvals() []Exhibit {
	facts := []parts.Fact{{Name: "Effect", Text: "eff_71", Mono: true}, {Name: "Idempotency key", Text: "ik_4d1f90b2c7", Mono: true}, {Name: "Attempts", Text: "1"}, {Name: "Sent", Time: minute}}
	show := func(state string, v pages.ApprovalView) Exhibit { return show("approval-"+state, pages.Approval, v) }
	long := changedView(func(v *pages.ApprovalView) {
		v.Sentence, v.Target, v.Step, v.Tool.Text = "Publish the page reports/2026-W49", "page reports/2026-W49", "publish, pass 2", "kb.publish 1"
		v.Irreversible, v.Reversible, v.Impact = true, "Cannot be undone by Countersign: the page it replaces is not kept.", "Everyone who reads the knowledge base sees the new text at once."
		v.Preview = &pages.Preview{Failed: "the target did not answer within 10 s"}
		v.Act.Approve, v.Act.Reject = "Approve publishing", "Reject publishing"
		v.Params.MustOpen = true
		v.Params.Rows = []parts.Value{
			{Name: "page", Type: "text", Text: "reports/2026-W49", Origin: "input.week"},
			{Name: "body", Type: "text", Text: report, Change: "changed", Old: strings.Replace(report, "3 h late", "2 h late", 1), Origin: "steps.make_plan.output.markdown", CopyURL: "/x"},
			{Name: "command", Type: "text", Text: strings.Repeat("echo step && ", 300) + "rm -rf /srv/data", Origin: "agent", CopyURL: "/y"},
		}
	})
	plan := changedView(func(v *pages.ApprovalView) {
		v.Document, v.Sentence, v.Target, v.Step, v.Tool, v.Risk, v.Reason = true, "The plan for the move", "", "plan", parts.Link{}, "", ""
		v.Impact = "Approving it sends nothing; the run goes on. What it does next is asked for by itself, where the policy says so. Without it these are never reached: Publish (kb.publish)."
		v.Preview, v.Checks, v.Reversible, v.Irreversible, v.Request = nil, nil, "", false, nil
		v.Act.Approve, v.Act.Reject = "Approve", "Reject"
		v.Params = parts.Values{Caption: "What is presented", Rows: []parts.Value{{Name: "plan", Type: "text", Text: "Move the archive first.\nThen the index."}}}
	})
	armedLong := long
	actArmed := *long.Act
	actArmed.Armed, actArmed.Reauthenticate = true, true
	armedLong.Act, armedLong.Risk = &actArmed, "critical"
	hostile := executed("confirmed", "Confirmed", pages.Execution{Title: "Confirmed", Stages: stages("done", "done"), Facts: facts, Receipt: &pages.Receipt{Facts: facts, Body: &parts.JSON{Title: "Answer", Text: "{}"}}})
	hostile.Act = pending().Act
	hostile.Banner, hostile.Draft, hostile.Diff = &parts.Notice{Tone: "warn", Title: "Changed", Text: "Changed."}, "draft", &parts.Values{Rows: params().Rows}
	return []Exhibit{
		show("pending", pending()),
		show("armed", changedView(func(v *pages.ApprovalView) { v.Act.Armed = true })),
		show("long", long),
		show("long-armed", armedLong),
		show("reconsider", changedView(func(v *pages.ApprovalView) {
			v.Act.May, v.Act.WhyNot = false, "You cannot decide this: you approved this revision already."
			v.Reconsider = &pages.Reconsider{Retract: "/approvals/apr_71/retract", Extend: "/approvals/apr_71/extend", Open: "retract", Error: "say why, in a few words"}
		})),
		show("document", plan), show("no-rule", changedView(func(v *pages.ApprovalView) { v.Policy.NoRule = true })),
		show("cannot", changedView(func(v *pages.ApprovalView) {
			v.Status.Word = "Waits for finance"
			v.Act = &pages.Act{Digest: digest1, WhyNot: "You asked for this, and the policy wants somebody else to decide.", WhoCan: []string{"Ben Okafor", "Lin Wei"}}
			v.Policy.DeadEnd = "Needs 2 of finance; only Lin Wei can, Mara Kline asked for it."
		})),
		show("no-reason", changedView(func(v *pages.ApprovalView) {
			v.Act.Reason, v.Act.ReasonError = "no", "Say in a sentence why: the person who asked will read it."
		})),
		show("stale", changedView(func(v *pages.ApprovalView) {
			v.Banner = &parts.Notice{Tone: "warn", Title: "This changed while you were reading", Text: "You decided about revision 1. Ben Okafor saved revision 2 at 12:08. Nothing was decided; look at the change and decide again."}
			v.Draft = "Fine, but shipping should not be part of it."
			v.Diff = &parts.Values{Caption: "Revision 2 against revision 1", Against: "revision 1", Rows: params().Rows[1:2]}
		})),
		show("second", endedView("rejected", "Rejected", pages.Ended{Title: "Rejected by Lin Wei", Reason: "The carrier pays this one.", Text: "The run goes on with the reason and asks again if it has another plan.", Facts: []parts.Fact{{Name: "When", Time: minute}}})),
		show("approved", executed("approved", "Approved", pages.Execution{Title: "Approved, waits to start", Stages: stages("now", "todo"), Text: "It starts within seconds, after the order was looked at again.",
			Revoke: "/approvals/apr_71/revoke", RevokeNote: "Not started yet: you can still take it back. The request then waits again, as revision 3.", Digest: digest1, Facts: facts[:2]})),
		show("sent", executed("sent", "Sent", pages.Execution{Title: "Sent, no answer yet", Stages: stages("done", "now"), RevokeNote: "Started at 12:21:07: too late to take it back. shop.cancel_refund can undo it afterwards.", Facts: facts})),
		show("confirmed", executed("confirmed", "Confirmed", pages.Execution{Title: "Done: the refund was made", Stages: stages("done", "done"), Facts: facts, ReceiptURL: "/approvals/apr_71/receipt",
			Receipt: &pages.Receipt{Facts: []parts.Fact{{Name: "Refund", Text: "rf_20931", Mono: true}, {Name: "Status", Text: "201"}, {Name: "Answered", Time: minute}, {Name: "Body", Digest: digest3}}, Body: &parts.JSON{Title: "Answer of the target", Text: "{\"id\":\"rf_20931\",\"state\":\"booked\"}"}}})),
		show("refused", executed("refused", "Refused", pages.Execution{Title: "The target refused it", Text: "It answered 422: the order was refunded meanwhile. Nothing happened, and it is not tried again.", Stages: stages("done", "bad"), Facts: facts})),
		show("unknown", executed("unknown", "Unknown", pages.Execution{Title: "Nobody knows yet whether it happened", Text: "It was sent at 12:21:07 and the connection broke before an answer came. It is not sent again. The target is asked every minute; after that a person has to find out.",
			Stages: stages("done", "unknown"), Facts: facts, Next: &parts.Link{Text: "Find out what happened", URL: "/effects/eff_71"}})),
		show("expired", endedView("expired", "Expired", pages.Ended{Title: "Nobody decided in time", Text: "The time to decide passed at 12:40. Nothing was done; the run ended as expired."})),
		show("superseded", changedView(func(v *pages.ApprovalView) {
			v.Status, v.Revision, v.Act = parts.Status{Code: "superseded", Word: "Superseded"}, 1, nil
			v.Revisions[0].Current, v.Revisions[1].Current = true, false
			v.Ended = &pages.Ended{Status: v.Status, Title: "This is not the revision that counts", Text: "Revision 2 took its place at 12:08.", Next: &parts.Link{Text: "Go to revision 2", URL: "/approvals/apr_71"}}
		})),
		show("withdrawn", endedView("withdrawn", "Withdrawn", pages.Ended{Title: "Withdrawn by Mara Kline", Text: "The run was cancelled, so nobody needs to decide any more.", Reason: "Customer wants a replacement instead."})),
		show("tampered", endedView("blocked", "Blocked", pages.Ended{Title: "The stored request is not the one that was approved", Text: "The amount in the database differs from the approved document. Nothing was sent, and the run is blocked. An operator must look at the database before anything goes on.",
			Facts: []parts.Fact{{Name: "Approved", Digest: digest1}, {Name: "Stored now", Digest: digest3}}, Next: &parts.Link{Text: "Open the run", URL: "/runs/run_71"}})),
		deceive("approval", pages.Approval, hostile),
	}
}

func edits() []Exhibit {
	v := pages.EditView{Page: frame("Edit", "/inbox"), Back: parts.Link{Text: "Back to the request", URL: "/approvals/apr_71"}, Action: "/approvals/apr_71/edit",
		Sentence: "Refund 1,420.00 EUR on order 8841", Risk: "high", Digest: digest1, Revision: 1,
		Fields: []parts.Field{
			{Name: "/amount", Label: "Amount in cents", Kind: "integer", Value: "142000", Original: "142000", Reading: "142000 is 1420.00 EUR", Hint: "whole number, 1 to 1,000,000", Required: true},
			{Name: "/note", Label: "Note", Kind: "multiline", Value: "Refund for order 8841", Original: "Refund for order 8841", Hint: "at most 200 characters"}},
		Comment: parts.Field{Name: "comment", Label: "Why do you change it?", Kind: "multiline", Rows: 2},
		Fixed:   parts.Values{Caption: "Parameters that stay", Rows: params().Rows[:1]}}
	wrong := v
	wrong.Errors = &parts.Notice{Tone: "bad", Title: "Two things to correct", Text: "Nothing was saved."}
	wrong.Fields = []parts.Field{v.Fields[0], v.Fields[1]}
	wrong.Fields[0].Value, wrong.Fields[0].Error, wrong.Fields[0].Changed = "12,40", "Write a whole number of cents, such as 1240.", true
	wrong.Fields[0].Reading = ""
	checked := v
	checked.Fields = []parts.Field{v.Fields[0], v.Fields[1]}
	checked.Fields[0].Value, checked.Fields[0].Changed, checked.Fields[0].Reading = "124000", true, "124000 is 1240.00 EUR"
	checked.Outcome = &pages.EditOutcome{Sentence: "Refund 1,240.00 EUR on order 8841", Diff: parts.Values{Caption: "Revision 2 against revision 1", Against: "revision 1", Rows: params().Rows[1:2]},
		Digest: digest2, Policy: policy(), Notes: []string{"The approval of Ben Okafor no longer counts.", "You may approve your own revision only where one approval is enough: here two are needed."}, Save: "Save as revision 2"}
	return []Exhibit{show("edit", pages.Edit, v), show("edit-wrong", pages.Edit, wrong), show("edit-checked", pages.Edit, checked), deceive("edit", pages.Edit, checked)}
}
