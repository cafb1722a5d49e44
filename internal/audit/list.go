package audit

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"countersign/internal/problem"
	"countersign/internal/store"
)

// Filter chooses entries; empty fields match all. Cursor is the Next of the
// page before.
type Filter struct {
	Tenant                            string
	Actor, Action, Subject, Text, Run string
	Since, Until                      time.Time
	Cursor                            string
	Limit                             int // 1 to 200; else 50
	OldestFirst                       bool
}

const sqlEntries = `SELECT seq, body FROM audit_entry
	WHERE tenant = $1 AND ($2 < 0 OR seq < $2) AND seq > $3
		AND ($4 = '' OR actor = $4) AND ($5 = '' OR action = $5) AND ($6 = '' OR subject = $6) AND ($7 = '' OR run = $7)
		AND at >= $8 AND ($9 = 0 OR at < $9) AND ($10 = '' OR body LIKE $10 ESCAPE '\')
	ORDER BY `

// Entries returns a page of entries, newest first unless asked otherwise, and
// the cursor of the next page. Problem: invalid, for a cursor not made here.
func (l *Log) Entries(ctx context.Context, q store.Querier, f Filter) ([]Entry, string, error) {
	before, after := int64(-1), int64(-1)
	if f.Cursor != "" {
		n, err := strconv.ParseInt(f.Cursor, 10, 64)
		if err != nil || n < 0 {
			return nil, "", problem.New(problem.Invalid, "invalid_query", "The cursor is not one of this list.").At("cursor", "use the next of the page before")
		}
		before = n
		if f.OldestFirst {
			before, after = -1, n
		}
	}
	if f.Limit < 1 || f.Limit > 200 {
		f.Limit = 50
	}
	order := "seq DESC LIMIT $11"
	if f.OldestFirst {
		order = "seq ASC LIMIT $11"
	}
	rows, err := q.Query(ctx, sqlEntries+order, f.Tenant, before, after, f.Actor, f.Action, f.Subject, f.Run,
		microsOr(f.Since, 0), microsOr(f.Until, 0), like(f.Text), f.Limit+1)
	if err != nil {
		return nil, "", fmt.Errorf("list audit entries: %w", err)
	}
	defer rows.Close()
	var out []Entry
	for rows.Next() {
		var seq int64
		var raw []byte
		if err := rows.Scan(&seq, &raw); err != nil {
			return nil, "", fmt.Errorf("list audit entries: %w", err)
		}
		e, err := decode(raw)
		if err != nil {
			return nil, "", err
		}
		out = append(out, e)
	}
	next := ""
	if len(out) > f.Limit {
		out = out[:f.Limit]
		next = strconv.FormatInt(out[f.Limit-1].Seq, 10)
	}
	return out, next, rows.Err()
}

func microsOr(t time.Time, missing int64) int64 {
	if t.IsZero() {
		return missing
	}
	return store.Micros(t)
}

// like turns words into a LIKE pattern in which they stand for themselves.
func like(text string) string {
	if text == "" {
		return ""
	}
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
}

// ExportJSON writes every entry of the tenant, oldest first, one canonical
// body a line. It reads page by page, so that no reading stays open while the
// reader is slow.
func (l *Log) ExportJSON(ctx context.Context, tenant string, w io.Writer) error {
	return l.export(ctx, tenant, func(e Entry) error {
		raw, err := e.encode()
		if err != nil {
			return err
		}
		_, err = w.Write(append(raw, '\n'))
		return err
	})
}

var csvHeader = []string{"seq", "id", "time", "actor_kind", "actor", "actor_id", "how", "channel", "action", "subject", "run", "digest", "outcome", "authority"}

// ExportCSV writes the same as a table. A cell that a spreadsheet would take
// for a formula is preceded by an apostrophe.
func (l *Log) ExportCSV(ctx context.Context, tenant string, w io.Writer) error {
	table := csv.NewWriter(w)
	if err := table.Write(csvHeader); err != nil {
		return err
	}
	err := l.export(ctx, tenant, func(e Entry) error {
		authority, err := json.Marshal(e.Authority)
		if err != nil {
			return err
		}
		cells := []string{strconv.FormatInt(e.Seq, 10), string(e.ID), e.Time.Format(time.RFC3339Nano), e.Actor.Kind, e.Actor.Name, e.Actor.ID,
			e.Actor.How, e.Channel, e.Action, e.Subject, string(e.Run), e.Digest, e.Outcome, string(authority)}
		for i := range cells {
			cells[i] = inert(cells[i])
		}
		return table.Write(cells)
	})
	table.Flush()
	if err != nil {
		return err
	}
	return table.Error()
}

// inert keeps a spreadsheet from running a cell (OWASP, CSV injection).
func inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

func (l *Log) export(ctx context.Context, tenant string, write func(Entry) error) error {
	f := Filter{Tenant: tenant, OldestFirst: true, Limit: 200}
	for {
		var page []Entry
		err := l.db.View(ctx, func(ctx context.Context, q store.Querier) (err error) {
			page, f.Cursor, err = l.Entries(ctx, q, f)
			return err
		})
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := write(e); err != nil {
				return err
			}
		}
		if f.Cursor == "" {
			return nil
		}
	}
}
