package audit

import (
	"context"
	"fmt"
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

// Entries returns a page of entries, newest first unless asked otherwise, and
// the cursor of the next page. Problem: invalid, for a cursor not made here.
func (l *Log) Entries(ctx context.Context, q store.Querier, f Filter) ([]Entry, string, error) {
	bodies, next, err := bodies(ctx, q, f)
	if err != nil {
		return nil, "", err
	}
	out := make([]Entry, 0, len(bodies))
	for _, raw := range bodies {
		e, err := decode(raw)
		if err != nil {
			return nil, "", err
		}
		out = append(out, e)
	}
	return out, next, nil
}

// query is the statement of a filter: only the conditions it has, so that
// each finds its index.
func (f Filter) query() (string, []any, error) {
	sql, args := `SELECT seq, body FROM audit_entry WHERE tenant = $1`, []any{f.Tenant}
	and := func(condition string, value any) {
		args = append(args, value)
		sql += " AND " + fmt.Sprintf(condition, fmt.Sprint("$", len(args)))
	}
	for _, c := range []struct{ condition, value string }{
		{"actor = %s", f.Actor}, {"action = %s", f.Action}, {"subject = %s", f.Subject}, {"run = %s AND run <> ''", f.Run}, {`body LIKE %s ESCAPE '\'`, like(f.Text)},
	} {
		if c.value != "" {
			and(c.condition, c.value)
		}
	}
	if !f.Since.IsZero() {
		and("at >= %s", store.Micros(f.Since))
	}
	if !f.Until.IsZero() {
		and("at < %s", store.Micros(f.Until))
	}
	if f.Cursor != "" {
		n, err := strconv.ParseInt(f.Cursor, 10, 64)
		if err != nil || n < 0 {
			return "", nil, problem.New(problem.Invalid, "invalid_query", "The cursor is not one of this list.").At("cursor", "use the next of the page before")
		}
		if f.OldestFirst {
			and("seq > %s", n)
		} else {
			and("seq < %s", n)
		}
	}
	sql += " ORDER BY seq DESC LIMIT "
	if f.OldestFirst {
		sql = strings.TrimSuffix(sql, "DESC LIMIT ") + "LIMIT "
	}
	args = append(args, f.Limit+1)
	return sql + fmt.Sprint("$", len(args)), args, nil
}

// bodies returns a page of entries byte for byte.
func bodies(ctx context.Context, q store.Querier, f Filter) (out [][]byte, next string, err error) {
	if f.Limit < 1 || f.Limit > 200 {
		f.Limit = 50
	}
	query, args, err := f.query()
	if err != nil {
		return nil, "", err
	}
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, "", fmt.Errorf("list audit entries: %w", err)
	}
	defer rows.Close()
	var last int64
	for rows.Next() {
		var seq int64
		var raw []byte
		if err := rows.Scan(&seq, &raw); err != nil {
			return nil, "", fmt.Errorf("list audit entries: %w", err)
		}
		if len(out) == f.Limit {
			next = strconv.FormatInt(last, 10)
			break
		}
		out, last = append(out, raw), seq
	}
	return out, next, rows.Err()
}

// like turns words into a LIKE pattern in which they stand for themselves.
func like(text string) string {
	if text == "" {
		return ""
	}
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
}
