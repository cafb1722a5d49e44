package approvals_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/id"
	"countersign/internal/store"

	"github.com/google/go-cmp/cmp"
)

func (d *desk) list(f approvals.Filter) (items []approvals.Item, cursor string) {
	d.t.Helper()
	f.Tenant = tenant
	d.view(func(ctx context.Context, q store.Querier) (err error) {
		items, cursor, err = d.List(ctx, q, f)
		return err
	})
	return items, cursor
}

// all follows the cursors to the end.
func (d *desk) all(f approvals.Filter) (ids []id.Approval) {
	d.t.Helper()
	for {
		page, cursor := d.list(f)
		for _, i := range page {
			ids = append(ids, i.ID)
		}
		if f.Cursor = cursor; cursor == "" {
			return ids
		}
	}
}

func (d *desk) inbox(name string) (ids []id.Approval) {
	d.t.Helper()
	d.view(func(ctx context.Context, q store.Querier) error {
		items, err := d.Inbox(ctx, q, tenant, named(name))
		for _, i := range items {
			ids = append(ids, i.ID)
		}
		return err
	})
	return ids
}

func TestList_PagesByDeadlineThenAgeWithoutGapsOrRepeats(t *testing.T) {
	d := newDesk(t)
	var want []id.Approval
	late := asks(role("finance", 1))
	late.DecideWithin = time.Hour
	last := d.open(d.refund(late))
	for range 7 {
		want = append(want, d.ask(role("finance", 1)).ID) // all due at one instant, made at one instant
	}
	soon := asks(role("finance", 1))
	soon.DecideWithin = time.Minute
	first := d.open(d.refund(soon))
	got := d.all(approvals.Filter{Status: approvals.Pending, Limit: 2})
	if len(got) != 9 || got[0] != first.ID || got[8] != last.ID {
		t.Fatalf("got %v, want %s first and %s last of 9", got, first.ID, last.ID)
	}
	seen := map[id.Approval]bool{}
	for _, i := range got {
		seen[i] = true
	}
	for _, i := range want {
		if !seen[i] {
			t.Errorf("%s is missing", i)
		}
	}
	if diff := cmp.Diff(d.all(approvals.Filter{Status: approvals.Pending}), got); diff != "" {
		t.Errorf("one page and many differ:\n%s", diff)
	}
	if diff := cmp.Diff(got, d.all(approvals.Filter{ForMe: named("ana"), Limit: 2})); diff != "" {
		t.Errorf("the inbox has another order (-list +inbox):\n%s", diff)
	}
}

func TestList_OthersComeNewestFirst(t *testing.T) {
	d := newDesk(t)
	var want []id.Approval
	for i := range 5 {
		d.at(time.Duration(i) * time.Second)
		want = append([]id.Approval{d.ask(role("finance", 1)).ID}, want...)
	}
	if diff := cmp.Diff(want, d.all(approvals.Filter{Limit: 2})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestList_FiltersAndFinds(t *testing.T) {
	d := newDesk(t)
	plain := d.ask(role("finance", 1))
	o := d.refund(asks(role("finance", 1)))
	o.Tool, o.Risk, o.Target, o.Summary, o.Initiator, o.InitiatorName = "ops.restart", "low", `100%_done\now`, "Restart", named("olga"), "Olga"
	o.Params = amount("1")
	odd := d.open(o)
	cases := []struct {
		f    approvals.Filter
		want []id.Approval
	}{
		{approvals.Filter{Tool: "ops.restart"}, []id.Approval{odd.ID}},
		{approvals.Filter{Risk: "high"}, []id.Approval{plain.ID}},
		{approvals.Filter{Workflow: "other"}, nil},
		{approvals.Filter{Initiator: named("olga")}, []id.Approval{odd.ID}},
		{approvals.Filter{Run: plain.Run}, []id.Approval{plain.ID}},
		{approvals.Filter{Status: approvals.Approved}, nil},
		{approvals.Filter{Text: `%_done\`}, []id.Approval{odd.ID}}, // escaped: no wildcards
		{approvals.Filter{Text: "%"}, []id.Approval{odd.ID}},
		{approvals.Filter{Text: "_"}, []id.Approval{odd.ID}},
		{approvals.Filter{Text: "order A-"}, []id.Approval{plain.ID}},
		{approvals.Filter{Text: "Olga"}, []id.Approval{odd.ID}},
		{approvals.Filter{Text: plain.ParamsHash}, []id.Approval{plain.ID}},
		{approvals.Filter{Text: string(odd.ID)}, []id.Approval{odd.ID}},
		{approvals.Filter{Text: odd.Digest}, []id.Approval{odd.ID}},
		{approvals.Filter{Text: "' OR 1=1 --"}, nil},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, d.all(c.f)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.f, diff)
		}
	}
	d.view(func(ctx context.Context, q store.Querier) error {
		items, _, err := d.List(ctx, q, approvals.Filter{Tenant: "other"})
		if len(items) != 0 {
			t.Errorf("another tenant sees %d requests", len(items))
		}
		return err
	})
}

func TestList_RefusesAForeignCursor(t *testing.T) {
	d := newDesk(t)
	for _, cursor := range []string{"x", "!!", "MS8y", "eC95L3o"} {
		err := d.db.View(context.Background(), func(ctx context.Context, q store.Querier) error {
			_, _, err := d.List(ctx, q, approvals.Filter{Tenant: tenant, Cursor: cursor})
			return err
		})
		wantCode(t, err, "invalid_cursor")
	}
}

func TestList_PageSizesAreBounded(t *testing.T) {
	d := newDesk(t)
	for range approvals.PageDefault + 1 {
		d.ask(role("finance", 1))
	}
	if page, cursor := d.list(approvals.Filter{}); len(page) != approvals.PageDefault || cursor == "" {
		t.Errorf("no limit gives %d, cursor %q; want %d and more", len(page), cursor, approvals.PageDefault)
	}
	if page, _ := d.list(approvals.Filter{Limit: 1_000_000}); len(page) > approvals.PageMax {
		t.Errorf("%d on one page, want at most %d", len(page), approvals.PageMax)
	}
}

func TestInbox_HoldsWhatThePersonCanMoveForward(t *testing.T) {
	d := newDesk(t)
	two := d.ask(role("finance", 2))
	d.at(time.Second)
	both := d.ask(role("finance", 1), role("legal", 1))
	d.at(2 * time.Second)
	own := d.refund(asks(role("finance", 1)))
	own.Initiator, own.InitiatorName = named("ana"), "Ana"
	mine := d.open(own)
	d.approve("ana", two)  // voted already
	d.approve("ben", both) // finance is filled: only legal is open
	for name, want := range map[string][]id.Approval{
		"ana": nil, "ben": {two.ID, mine.ID}, "cleo": {two.ID, both.ID, mine.ID}, "dora": {both.ID}, "olga": nil, "nobody": nil} {
		if diff := cmp.Diff(want, d.inbox(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	d.view(func(ctx context.Context, q store.Querier) error {
		others, err := d.WaitingOnOthers(ctx, q, tenant, named("ana"))
		if len(others) != 2 || others[0].ID != two.ID || others[1].ID != mine.ID {
			t.Errorf("ana waits on %d, want the one she voted on and her own", len(others))
		}
		if err != nil {
			return err
		}
		counts, err := d.Counts(ctx, q, tenant, named("cleo"))
		if want := (approvals.Counts{ForMe: 3, Pending: 3}); counts != want {
			t.Errorf("counts = %+v, want %+v", counts, want)
		}
		return err
	})
}

func TestDecidedBy_ListsUnknownOutcomesFirst(t *testing.T) {
	d := newDesk(t)
	var ids []id.Approval
	for i := range 6 {
		d.at(time.Duration(i) * time.Second)
		r := d.approve("ana", d.ask(role("finance", 1)))
		ids = append(ids, r.ID)
		outcome := map[int]string{1: "unknown", 3: "unknown", 4: "confirmed"}[i]
		if outcome != "" {
			d.must(func(ctx context.Context, tx *store.Tx) error { return d.Settled(ctx, tx, tenant, r.ID, outcome) })
		}
	}
	d.view(func(ctx context.Context, q store.Querier) error {
		mine, err := d.Counts(ctx, q, tenant, named("ana"))
		others, err2 := d.Counts(ctx, q, tenant, named("ben"))
		if mine.Unknown != 2 || others.Unknown != 0 {
			t.Errorf("ana has %d unknown outcomes, ben %d; want 2 and 0", mine.Unknown, others.Unknown)
		}
		return errors.Join(err, err2)
	})
	want := []string{fmt.Sprint(ids[3], " unknown"), fmt.Sprint(ids[1], " unknown"), fmt.Sprint(ids[5], " "), fmt.Sprint(ids[4], " confirmed"),
		fmt.Sprint(ids[2], " "), fmt.Sprint(ids[0], " ")}
	for _, limit := range []int{1, 2, 5, 50} {
		var got []string
		cursor := ""
		for {
			d.view(func(ctx context.Context, q store.Querier) error {
				page, next, err := d.DecidedBy(ctx, q, tenant, named("ana"), cursor, limit)
				for _, m := range page {
					got = append(got, fmt.Sprint(m.Item.ID, " ", m.Item.Outcome))
				}
				cursor = next
				return err
			})
			if cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestQueries_UseTheIndexesMadeForThem(t *testing.T) {
	d := newDesk(t)
	d.view(func(ctx context.Context, q store.Querier) error {
		for query, indexes := range approvals.ShortQueries {
			args := make([]any, strings.Count(query, "$"))
			for i := range args {
				args[i] = 1
			}
			rows, err := q.Query(ctx, "EXPLAIN QUERY PLAN "+query, args...)
			if err != nil {
				return err
			}
			plan := ""
			for rows.Next() {
				var n, parent, unused int
				var step string
				if err := rows.Scan(&n, &parent, &unused, &step); err != nil {
					return err
				}
				plan += step + "\n"
			}
			rows.Close()
			for _, index := range indexes {
				if !strings.Contains(plan, index) {
					t.Errorf("%s\ndoes not use %s:\n%s", query, index, plan)
				}
			}
			walks := strings.NewReplacer("SCAN CONSTANT ROW", "", "SCAN (subquery-1)", "").Replace(plan)
			if strings.Contains(walks, "SCAN") || strings.Contains(plan, "request_newest") && !slices.Contains(indexes, "request_newest") {
				t.Errorf("%s\nwalks the table:\n%s", query, plan)
			}
		}
		return nil
	})
}

// Who can complete a request is asked when the list is read: people leave and
// come while it waits.
func TestList_FlagsWhatNobodyCanCompleteNow(t *testing.T) {
	d := newDesk(t)
	alone := d.ask(role("finance", 1))
	other := d.ask(role("approver", 1))
	flagged := func(when string, want ...id.Approval) {
		t.Helper()
		d.view(func(ctx context.Context, q store.Querier) error {
			listed, _, err := d.List(ctx, q, approvals.Filter{Tenant: tenant, Status: approvals.Pending})
			if err != nil {
				t.Fatal(err)
			}
			dead, err := d.DeadEnds(ctx, q, tenant)
			if err != nil {
				t.Fatal(err)
			}
			counts, err := d.Counts(ctx, q, tenant, named("max"))
			if err != nil {
				t.Fatal(err)
			}
			var inList, byKind []id.Approval
			for _, i := range listed {
				if i.DeadEnd != "" {
					inList = append(inList, i.ID)
				}
			}
			for _, i := range dead {
				byKind = append(byKind, i.ID)
			}
			slices.Sort(want)
			slices.Sort(inList)
			slices.Sort(byKind)
			if diff := cmp.Diff(want, inList) + cmp.Diff(want, byKind); diff != "" || counts.DeadEnds != len(want) {
				t.Errorf("%s: %d counted; (-want +got):\n%s", when, counts.DeadEnds, diff)
			}
			return nil
		})
	}
	flagged("at first")
	for _, name := range []string{"ana", "ben", "cleo"} {
		d.folk.set(approvals.Person{ID: named(name), Name: name, Roles: []string{"finance"}})
	}
	flagged("when all of finance is disabled", alone.ID)
	d.folk.set(approvals.Person{ID: named("max"), Name: "Max", Active: true})
	flagged("when Max lost the role too", alone.ID, other.ID)
	d.folk.set(approvals.Person{ID: named("ana"), Name: "Ana", Roles: []string{"finance", "approver"}, Active: true})
	flagged("when Ana is back with both")
}
