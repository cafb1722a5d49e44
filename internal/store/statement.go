package store

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// innerStmt is what the driver's statements can do.
type innerStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// stmt is a prepared statement and what the database said it would change.
type stmt struct {
	inner   innerStmt
	writes  []string // tables it inserts into, updates or deletes from, triggers included
	guarded string   // the first of them that is guarded
	busy    bool     // a result of it is open
	cached  bool
	used    uint64
}

// prepare returns the statement for a text, which is busy until released.
// While a result of it is open, the same text gets a statement of its own.
func (c *conn) prepare(query string) (*stmt, error) {
	c.clock++
	kept := c.stmts
	if c.rules.ours() {
		kept = c.own
	}
	s, ok := kept[query]
	if ok && !s.busy {
		s.busy, s.used = true, c.clock
		return s, nil
	}
	fresh := &stmt{busy: true, used: c.clock, cached: !ok}
	end := c.rules.watch(fresh)
	inner, err := c.inner.PrepareContext(context.Background(), query)
	end()
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", excerpt(query), c.rules.explain(err))
	}
	fresh.inner = inner.(innerStmt)
	if fresh.cached {
		c.evict()
		kept[query] = fresh
	}
	return fresh, nil
}

// release ends a use of the statement.
func (c *conn) release(s *stmt) {
	s.busy = false
	if !s.cached && !c.closed {
		_ = s.inner.Close()
	}
}

// evict makes room for one statement: the one unused for longest goes. The
// scan is rare, as the program has far fewer texts than statementsMax.
func (c *conn) evict() {
	if len(c.stmts) < statementsMax {
		return
	}
	var oldest string
	var found *stmt
	for text, s := range c.stmts {
		if !s.busy && (found == nil || s.used < found.used) {
			oldest, found = text, s
		}
	}
	if found != nil {
		_ = found.inner.Close()
		delete(c.stmts, oldest)
	}
}

// excerpt is enough of a statement to find it.
func excerpt(query string) string {
	const most = 120
	if len(query) > most {
		query = query[:most] + "…"
	}
	return fmt.Sprintf("%q", query)
}
