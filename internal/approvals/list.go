package approvals

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// PageMax bounds one page of a list; PageDefault is taken for no limit.
const (
	PageMax     = 200
	PageDefault = 50
)

// Filter chooses requests; an empty field matches all.
type Filter struct {
	Tenant    string
	Status    Status
	ForMe     id.Person // only what waits for this person; Status is then pending
	Tool      string
	Risk      string
	Workflow  string
	Initiator id.Person
	Run       id.Run
	Outcome   string
	Text      string // found in target, summary, initiator's name; or the whole of an initiator, params hash, digest or id
	Cursor    string
	Limit     int
}

const sqlWhere = ` FROM request r WHERE r.tenant = $1 AND ($2 = '' OR r.status = $2) AND ($3 = '' OR r.tool = $3) AND ($4 = '' OR r.risk = $4)
	AND ($5 = '' OR r.workflow = $5) AND ($6 = '' OR r.initiator = $6) AND ($7 = '' OR r.run = $7) AND ($8 = '' OR r.outcome = $8)
	AND ($9 = '' OR r.target LIKE $9 ESCAPE '\' OR r.summary LIKE $9 ESCAPE '\' OR r.title LIKE $9 ESCAPE '\' OR r.initiator_name LIKE $9 ESCAPE '\'
		OR r.initiator = $10 OR r.params_hash = $10 OR r.digest = $10 OR r.id = $10)`

const (
	sqlByDeadline = `SELECT ` + itemColumns + sqlWhere + ` AND r.status = 'pending' AND (r.decide_by, r.created_at, r.id) > ($11, $12, $13)
		ORDER BY r.decide_by, r.created_at, r.id LIMIT $14`
	sqlNewest = `SELECT ` + itemColumns + sqlWhere + ` AND (r.created_at, r.id) < ($11, $12)
		ORDER BY r.created_at DESC, r.id DESC LIMIT $13`
)

func (f Filter) args() []any {
	like := ""
	if f.Text != "" {
		like = "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(f.Text) + "%"
	}
	return []any{f.Tenant, string(f.Status), f.Tool, f.Risk, f.Workflow, string(f.Initiator), string(f.Run), f.Outcome, like, f.Text}
}

// List returns one page of requests and the cursor of the next, empty at the
// end. Pending ones come by deadline, then age, then id; other lists newest
// first. Problem: invalid_cursor.
func (b *Book) List(ctx context.Context, q store.Querier, f Filter) ([]Item, string, error) {
	f.Limit = pageSize(f.Limit)
	if f.ForMe != "" {
		return b.listForMe(ctx, q, f)
	}
	var after key
	var items []Item
	err := after.parse(f.Cursor)
	switch {
	case err != nil:
	case f.Status == Pending:
		items, err = readItems(ctx, q, sqlByDeadline, append(f.args(), after.first, after.second, after.id, f.Limit+1)...)
	default:
		if f.Cursor == "" {
			after = key{second: maxMicros}
		}
		items, err = readItems(ctx, q, sqlNewest, append(f.args(), after.second, after.id, f.Limit+1)...)
	}
	if err != nil {
		return nil, "", err
	}
	items, nextCursor := cut(items, f.Limit, keyOf)
	return items, nextCursor, b.present(ctx, q, items)
}

func pageSize(n int) int {
	if n <= 0 {
		return PageDefault
	}
	return min(n, PageMax)
}

// maxMicros is later than any stored time.
const maxMicros = int64(1) << 62

// key is where a page ended, in the order of its list.
type key struct {
	first, second int64
	id            string
}

func keyOf(i Item) key {
	return key{store.Micros(i.DecideBy), store.Micros(i.CreatedAt), string(i.ID)}
}

func (k key) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("%d/%d/%s", k.first, k.second, k.id)))
}

func (k *key) parse(cursor string) error {
	if cursor == "" {
		k.first, k.second = -maxMicros, -maxMicros
		return nil
	}
	bad := problem.New(problem.Invalid, "invalid_cursor", "The cursor is not one that this list gave; start again without it.").At("cursor", "is not known")
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.SplitN(string(raw), "/", 3)
	if err != nil || len(parts) != 3 {
		return bad
	}
	if k.first, err = strconv.ParseInt(parts[0], 10, 64); err != nil {
		return bad
	}
	if k.second, err = strconv.ParseInt(parts[1], 10, 64); err != nil {
		return bad
	}
	k.id = parts[2]
	return nil
}

// cut takes the one more that was read off the page.
func cut[T any](all []T, limit int, keyOf func(T) key) ([]T, string) {
	if len(all) <= limit {
		return all, ""
	}
	return all[:limit], keyOf(all[limit-1]).String()
}

func readItems(ctx context.Context, q store.Querier, query string, args ...any) ([]Item, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	defer rows.Close()
	var all []Item
	for rows.Next() {
		i, err := scanItem(rows)
		if err != nil {
			return nil, fmt.Errorf("list requests: %w", err)
		}
		all = append(all, i)
	}
	return all, rows.Err()
}

// present fills in how items stand now: how far their groups are, and which
// of them nobody can complete.
func (b *Book) present(ctx context.Context, q store.Querier, items []Item) error {
	if err := b.count(ctx, q, items); err != nil {
		return err
	}
	return b.dead(ctx, q, items)
}

// count fills in how far the groups of each item are.
func (b *Book) count(ctx context.Context, q store.Querier, items []Item) error {
	for n, i := range items {
		if i.votes == 0 {
			continue
		}
		all, err := decisions(ctx, q, i.Tenant, i.ID, i.Revision)
		if err != nil {
			return err
		}
		items[n].Groups = progress(i.law.Groups, standingOnly(all))
	}
	return nil
}
