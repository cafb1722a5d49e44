package gallery

import (
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"
)

func search(action string) parts.Search {
	return parts.Search{Action: action, Hint: "Target, person, hash, id", Filters: []parts.Filter{
		{Name: "risk", Label: "Risk", Options: []parts.Option{{Value: "", Text: "any", Selected: true}, {Value: "high", Text: "high"}, {Value: "critical", Text: "critical"}}},
		{Name: "tool", Label: "Tool", Options: []parts.Option{{Value: "", Text: "any", Selected: true}, {Value: "shop.refund", Text: "shop.refund"}}},
	}}
}

func queue(current string) parts.Queue {
	row := func(id, risk, title, amount, by, left string, t parts.Time, more func(*parts.QueueRow)) parts.QueueRow {
		r := parts.QueueRow{ID: id, URL: "/approvals/" + id + "?from=inbox", Risk: risk, Title: title, Amount: amount, By: by, Left: left, LeftTime: t, Current: id == current}
		if more != nil {
			more(&r)
		}
		return r
	}
	urgent := func(r *parts.QueueRow) { r.Urgent = true }
	return parts.Queue{Title: "For me", URL: "/inbox", Search: search("/inbox"), Groups: []parts.QueueGroup{
		{Title: "Overdue", Tone: "warn", Rows: []parts.QueueRow{
			row("apr_68", "high", "Restart the service checkout", "", "ops-bot for Kofi Mensah", "4 min overdue", minutes, urgent),
		}},
		{Title: "Today", Rows: []parts.QueueRow{
			row("apr_71", "high", "Refund 1,240.00 EUR on order 8841", "", "billing-agent for Mara Kline", "18 min left", soon, func(r *parts.QueueRow) { r.Progress = "1 of 2"; r.Urgent = true }),
			row("apr_72", "medium", "Publish the page reports/2026-W49", "", "planner-bot for Ben Okafor", "1 h left", later, nil),
			row("apr_75", "critical", "Delete the backup set nightly-2026-10", "", "storage-agent", "5 h left", later, func(r *parts.QueueRow) { r.Progress = "0 of 2"; r.Tags = []string{"sign in again"} }),
			row("apr_76", "low", "Send the newsletter draft to the review group", "", "mail-agent for Lin Wei", "9 h left", later, nil),
		}},
		{Title: "Later", Rows: []parts.QueueRow{
			row("apr_80", "medium", "发布页面 产品说明/退款规则", "", "planner-bot for 林薇", "tomorrow", tomorrow, nil),
			row("ask_81", "", "Which supplier should deliver the replacement?", "", "purchase-agent for Mara Kline", "2 days left", tomorrow, nil),
		}},
	}, More: "/inbox?cursor=apr_81"}
}

func decisions() parts.Queue {
	q := parts.Queue{Title: "My decisions", URL: "/decisions", Search: search("/decisions")}
	row := func(id, title, by, note, code, word string, t parts.Time) parts.QueueRow {
		return parts.QueueRow{ID: id, URL: "/approvals/" + id + "?from=decisions", Risk: "high", Title: title, By: by, Note: note, Left: t.Relative, LeftTime: t, Status: &parts.Status{Code: code, Word: word}}
	}
	q.Groups = []parts.QueueGroup{
		{Title: "Nobody knows yet", Tone: "unknown", Rows: []parts.QueueRow{
			row("apr_61", "Restart the service search", "ops-bot", "Sent at 09:20, no answer. An operator has to find out.", "unknown", "unknown", hours)}},
		{Title: "Under way", Rows: []parts.QueueRow{
			row("apr_66", "Refund 64.50 EUR on order 8790", "billing-agent for Mara Kline", "", "approved", "waits to start", minute)}},
		{Title: "Done", Rows: []parts.QueueRow{
			row("apr_55", "Refund 18.00 EUR on order 8702", "billing-agent for Mara Kline", "Receipt rf_20931", "confirmed", "confirmed", hours),
			row("apr_54", "Publish the page reports/2026-W48", "planner-bot", "You: “Two numbers are last week's.”", "rejected", "rejected", days)}},
	}
	return q
}

func lists() []Exhibit {
	empty := pages.InboxView{Page: frame("For me", "/inbox"), Queue: parts.Queue{Title: "For me", URL: "/inbox", Search: search("/inbox"),
		Empty: &parts.Empty{Title: "Nothing waits for you", Text: "New requests appear here by themselves."}}}
	none := pages.InboxView{Page: frame("For me", "/inbox"), Queue: parts.Queue{Title: "For me", URL: "/inbox", Search: search("/inbox"),
		Empty: &parts.Empty{Title: "Nothing matches", Text: "Seven requests wait for you without the filter.", Next: &parts.Link{Text: "Clear the filter", URL: "/inbox"}}}}
	none.Queue.Search.Query = "order 9999"
	none.Queue.Search.Chips = []parts.Chip{{Text: "risk: high", Remove: "/inbox?q=order+9999"}, {Text: "“order 9999”", Remove: "/inbox?risk=high"}}
	none.Queue.Search.Clear = "/inbox"
	none.Queue.Search.Filters[0].Options[1].Selected = true
	full := pages.InboxView{Page: frame("For me", "/inbox"), Queue: queue(""), Overview: []parts.Fact{
		{Name: "Due today", Text: "4, one overdue"},
		{Name: "Next deadline", Time: soon},
		{Name: "You decided last", Link: &parts.Link{Text: "Refund 64.50 EUR on order 8790", URL: "/approvals/apr_66"}},
	}}
	decided := pages.InboxView{Page: frame("My decisions", "/decisions"), Queue: decisions()}
	return []Exhibit{
		show("inbox-empty", pages.Inbox, empty),
		show("inbox-no-match", pages.Inbox, none),
		show("inbox", pages.Inbox, full),
		deceive("inbox", pages.Inbox, full),
		show("decisions", pages.Inbox, decided),
		deceive("decisions", pages.Inbox, decided),
	}
}
