package browser

import (
	"slices"
	"time"

	"countersign/internal/desk"
	"countersign/web/templates/parts"
)

// those are the items that fit.
func those[T any](all []T, fits func(T) bool) (some []T) {
	for _, x := range all {
		if fits(x) {
			some = append(some, x)
		}
	}
	return some
}

// due is a row with its deadline; zero: none.
type due struct {
	by  time.Time
	row parts.QueueRow
}

// dueRows are requests and questions as rows.
func (b *Browser) dueRows(all []desk.Approval, asked []desk.Question, from string) (rows []due) {
	for _, a := range all {
		rows = append(rows, due{a.DecideBy, b.queueRow(a, from)})
	}
	for _, q := range asked {
		rows = append(rows, due{q.AnswerBy, b.questionRow(q)})
	}
	return rows
}

// dueGroups puts rows under Overdue, Today and Later, by their deadlines and
// otherwise in their order.
func dueGroups(all []due) []parts.QueueGroup {
	slices.SortStableFunc(all, func(a, b due) int {
		switch {
		case a.by.IsZero() == b.by.IsZero():
			return a.by.Compare(b.by)
		case a.by.IsZero():
			return 1
		}
		return -1
	})
	groups := []parts.QueueGroup{{Title: "Overdue", Tone: "warn"}, {Title: "Today"}, {Title: "Later"}}
	for _, a := range all {
		i := 2
		switch left := a.by.Sub(now()); {
		case a.by.IsZero():
		case left <= 0:
			i = 0
		case left < 24*time.Hour:
			i = 1
		}
		groups[i].Rows = append(groups[i].Rows, a.row)
	}
	return slices.DeleteFunc(groups, func(g parts.QueueGroup) bool { return len(g.Rows) == 0 })
}

// until says how much of the time to act on a row is left.
func (b *Browser) until(row *parts.QueueRow, by time.Time) {
	left := by.Sub(now())
	row.LeftTime, row.Left, row.Urgent = b.at(by), parts.Distance(left)+" left", left < time.Hour
	if left <= 0 {
		row.Left = parts.Distance(-left) + " overdue"
	}
}
