package audit

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"countersign/internal/store"
)

// ExportJSON writes every entry of the tenant, oldest first, one canonical
// body a line, byte for byte as it was logged. It reads page by page, so that
// no reading stays open while the reader is slow, and ends at the entry that
// was the last when it began.
func (l *Log) ExportJSON(ctx context.Context, tenant string, w io.Writer) error {
	return l.export(ctx, tenant, func(raw []byte) error {
		_, err := w.Write(append(raw, '\n'))
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
	err := l.export(ctx, tenant, func(raw []byte) error {
		e, err := decode(raw)
		if err != nil {
			return err
		}
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

func (l *Log) export(ctx context.Context, tenant string, write func(body []byte) error) error {
	left := int64(0)
	err := l.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		err := q.QueryRow(ctx, sqlSize, tenant).Scan(&left)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	f := Filter{Tenant: tenant, OldestFirst: true, Limit: 200}
	for err == nil && left > 0 {
		var page [][]byte
		err = l.db.View(ctx, func(ctx context.Context, q store.Querier) (err error) {
			page, f.Cursor, err = bodies(ctx, q, f)
			return err
		})
		for _, body := range page[:min(left, int64(len(page)))] {
			err = errors.Join(err, write(body))
			if err != nil {
				return err
			}
		}
		if left -= int64(len(page)); f.Cursor == "" {
			return err
		}
	}
	return err
}
