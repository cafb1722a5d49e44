package demo

import (
	"fmt"
)

// idea is one kind of errand. A refund asks for a share of what was paid, or
// for a small amount that the policy allows by itself.
type idea struct {
	share   int    // percent of the order's total, for a refund
	cents   int    // instead of a share
	service string // for a restart
	report  bool   // for the report of another week
	alone   bool   // as an action of its own, not as a run of a workflow
	why     string // %s is the customer or the service
}

// ideas follow each other and begin again; the order numbers, and with them
// customers and amounts, go on.
var ideas = []idea{
	{cents: 990, why: "Voucher code WELCOME was not applied at checkout although it was still valid; difference of the basket as promised in the chat. %s has been told."},
	{share: 40, why: "%s returned two of the five chairs unused, both scanned in at the warehouse on Monday. Refund for those two."},
	{service: "checkout", why: "The connection pool of %s has been at its limit for nine minutes and does not recover; error rate 4 percent. A restart cleared this on 2026-11-12."},
	{share: 100, why: "The parcel has been lost for 14 days, the carrier's search is closed (ticket 8830). %s asks for the money instead of a replacement."},
	{cents: 1800, alone: true, why: "Late delivery by six days, our own warehouse mistake. Goodwill as in the handbook, section 4; %s accepted it in writing."},
	{report: true},
	{share: 15, alone: true, why: "The screen has one dead pixel. %s keeps it if we take 15 percent off, which is cheaper than the return."},
	{service: "mailer", why: "%s took the new certificate at 09:40 but serves the old one until it restarts. The old one ends tonight at 23:59 UTC."},
	{share: 65, why: "Subscription cancelled in the second week, pro rata for the rest of the term, terms of 2026-03. %s wrote twice and waits since Thursday."},
	{share: 25, why: "Price went down the day after the order and %s asked within the 48 hours of our promise. Difference between both prices."},
	{service: "search", alone: true, why: "Memory of %s grows 300 MB an hour since the last release; the fix is reviewed but not released. This buys the night."},
	{share: 90, alone: true, why: "%s reports that somebody else used the card; the bank has opened a case. Keeps 10 percent back until the parcel is found, as legal asked."},
}

// firstOrder is the number of the first order an errand is about.
const firstOrder = 51_237

// errand makes up the n-th thing the agent asks for, always the same.
func (d *Demo) errand(n int) (errand, error) {
	i := ideas[n%len(ideas)]
	e := errand{key: fmt.Sprintf("demo-errand-%05d", n)}
	switch {
	case i.report:
		week := fmt.Sprintf("2026-W%02d", 1+(46-n/len(ideas)%47+46)%47)
		e.workflow, e.thread, e.input = "weekly-report", "weekly-report", map[string]any{"week": week}
		return e, nil
	case i.service != "":
		return restartErrand(e, i), nil
	}
	return d.refundErrand(e, i, fmt.Sprint(firstOrder+n*17))
}

func restartErrand(e errand, i idea) errand {
	e.thread = "on-call"
	why := fmt.Sprintf(i.why, i.service)
	if i.alone {
		e.tool, e.reason, e.params = "ops.restart", why, map[string]any{"service": i.service, "drain_seconds": 2}
		return e
	}
	e.workflow, e.input = "restart-service", map[string]any{"service": i.service, "why": why}
	return e
}

// refundErrand asks for what the order allows: a share of its total, which
// refunds do not change, so that the errand is the same at each start.
func (d *Demo) refundErrand(e errand, i idea, order string) (errand, error) {
	o, err := d.shop.Order(order)
	if err != nil {
		return e, err
	}
	amount := i.cents
	if amount == 0 {
		amount = o.Total * i.share / 100
	}
	e.thread, e.behalf = supportDesk, o.Customer
	why := fmt.Sprintf(i.why, o.Customer)
	if i.alone {
		e.tool, e.reason = "shop.refund", why
		e.params = map[string]any{"order_id": order, "amount": amount, "currency": o.Currency, "note": "Your refund for order " + order}
		return e, nil
	}
	e.workflow, e.input = "refund", map[string]any{"order_id": order, "amount": amount, "why": why}
	return e, nil
}
