package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"countersign/internal/store"

	"golang.org/x/mod/sumdb/tlog"
)

// copyEvery is how often, at most, the heads are copied beside the database.
const copyEvery = time.Second

// headCopier runs copy soon after something changed, and at the end.
type headCopier struct {
	copy func()
	hint chan struct{} // holds one: there is something to copy
	quit chan struct{}
	done chan struct{}

	once sync.Once
}

func newHeadCopier(copy func()) *headCopier {
	return &headCopier{copy: copy, hint: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
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

// copyHeads keeps the last signed head of each tenant in a file outside the
// database, so that cutting the log's tail there is noticed here. A head only
// ever gives way to one of the same log that contains it: otherwise the older
// one is the evidence, stays, and Trouble says why. A failure to write is not
// fatal: the heads are in the database, and the next copy tries again.
func (l *Log) copyHeads() {
	kept, err := ReadHeadFile(l.headPath())
	if err != nil {
		l.troubled(fmt.Sprintf("%s cannot be read: %v", HeadFile, err))
		return
	}
	next := maps.Clone(kept)
	if next == nil {
		next = map[string]string{}
	}
	trouble := ""
	err = l.db.View(context.Background(), func(ctx context.Context, q store.Querier) error {
		trouble = ""
		heads, err := lastHeads(ctx, q)
		if err != nil {
			return err
		}
		for _, tenant := range slices.Sorted(maps.Keys(kept)) {
			if err := l.contains(ctx, q, tenant, heads[tenant], kept[tenant]); err != nil {
				trouble = fmt.Sprintf("the log of %q does not fit the head in %s: %v", tenant, HeadFile, err)
				delete(heads, tenant)
			}
		}
		maps.Copy(next, heads)
		return nil
	})
	if err != nil {
		return // closing, or the database says so elsewhere
	}
	l.troubled(trouble)
	if maps.Equal(next, kept) {
		return
	}
	if raw, err := json.MarshalIndent(next, "", "  "); err == nil {
		_ = writeDurably(l.headPath(), append(raw, '\n'), 0o644)
	}
}

func (l *Log) troubled(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = why
}

// contains returns nil if the log under the signed head has the kept head as
// its beginning.
func (l *Log) contains(ctx context.Context, q store.Querier, tenant, signed, kept string) error {
	if signed == kept {
		return nil
	}
	old, err := l.keys().open(kept)
	if err != nil {
		return fmt.Errorf("the kept head: %w", err)
	}
	if signed == "" {
		return fmt.Errorf("%w: %d entries are gone", errBehind, old.Size)
	}
	now, err := l.keys().open(signed)
	if err != nil {
		return err
	}
	if err := l.follows(tenant, now, old); err != nil {
		return err
	}
	root, err := tlog.TreeHash(old.Size, &nodeReader{ctx: ctx, q: q, tenant: tenant, seen: map[int64]tlog.Hash{}})
	if err == nil && root != old.Root {
		err = fmt.Errorf("its first %d entries are others", old.Size)
	}
	return err
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
