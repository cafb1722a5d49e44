package audit

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"countersign/internal/store"
)

// copyEvery is how often, at most, the heads are copied beside the database.
const copyEvery = time.Second

// headCopier keeps the last signed head of each tenant in a file outside the
// database, so that cutting the log's tail there is noticed here.
type headCopier struct {
	path string
	db   *store.DB
	hint chan struct{} // holds one: there is something to copy
	quit chan struct{}
	done chan struct{}

	once sync.Once
}

func newHeadCopier(path string, db *store.DB) *headCopier {
	return &headCopier{path: path, db: db, hint: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
}

func (c *headCopier) changed() {
	select {
	case c.hint <- struct{}{}:
	default:
	}
}

func (c *headCopier) start() { go c.run() }

func (c *headCopier) stop() {
	c.once.Do(func() { close(c.quit) })
	<-c.done
}

func (c *headCopier) run() {
	defer close(c.done)
	for {
		select {
		case <-c.hint:
			c.copy()
		case <-c.quit:
			c.copy()
			return
		}
		select {
		case <-time.After(copyEvery):
		case <-c.quit:
			c.copy()
			return
		}
	}
}

// copy writes the present heads. A failure is not fatal: the heads are in the
// database, and the next copy tries again.
func (c *headCopier) copy() {
	old, err := ReadHeadFile(c.path)
	if err != nil {
		return // a damaged copy is evidence too: Verify says so
	}
	var heads map[string]string
	err = c.db.View(context.Background(), func(ctx context.Context, q store.Querier) (err error) {
		if heads, err = lastHeads(ctx, q); err != nil {
			return err
		}
		return keepWhatIsGone(ctx, q, old, heads)
	})
	if err != nil || len(heads) == 0 {
		return
	}
	raw, err := json.MarshalIndent(heads, "", "  ")
	if err != nil {
		return
	}
	_ = writeDurably(c.path, append(raw, '\n'), 0o644)
}

// keepWhatIsGone puts back every copied head that the database no longer
// holds: a log that was cut must not wipe out what shows it.
func keepWhatIsGone(ctx context.Context, q store.Querier, old, heads map[string]string) error {
	for tenant, signed := range old {
		var there int
		err := q.QueryRow(ctx, `SELECT count(*) FROM audit_head WHERE tenant = $1 AND note = $2`, tenant, signed).Scan(&there)
		if err != nil {
			return err
		}
		if there == 0 {
			heads[tenant] = signed
		}
	}
	return nil
}

const sqlLastHeads = `SELECT h.tenant, h.note FROM audit_head h
	WHERE h.size = (SELECT MAX(size) FROM audit_head m WHERE m.tenant = h.tenant) ORDER BY h.tenant`

// lastHeads returns the last signed head of each tenant.
func lastHeads(ctx context.Context, q store.Querier) (map[string]string, error) {
	rows, err := q.Query(ctx, sqlLastHeads)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	heads := map[string]string{}
	for rows.Next() {
		var tenant, signed string
		if err := rows.Scan(&tenant, &signed); err != nil {
			return nil, err
		}
		heads[tenant] = signed
	}
	return heads, rows.Err()
}

// ReadHeadFile reads signed heads that were copied away: tenant to note. A
// file that does not exist holds none.
func ReadHeadFile(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	heads := map[string]string{}
	if err := json.Unmarshal(raw, &heads); err != nil {
		return nil, err
	}
	return heads, nil
}
