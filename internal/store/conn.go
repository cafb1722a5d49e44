package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"

	"modernc.org/sqlite"
)

// errNoRow is returned by conn.text when a statement gives no row.
var errNoRow = errors.New("no row")

// innerConn is what the driver's connections can do beyond driver.Conn.
type innerConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	sqlite.AuthorizerRegisterer
	sqlite.DBStatus
}

// conn is one physical connection with its prepared statements. It has one
// owner at a time and no lock: the writer's goroutine, or the view that holds
// the reader. Its owner runs statements on it directly; database/sql borrows
// it, through the *sql.Conn pinned to it, to give callers *sql.Rows.
type conn struct {
	inner  innerConn
	pinned *sql.Conn
	pool   *sql.DB
	stmts  map[string]*stmt // callers' statements by text, at most statementsMax
	own    map[string]*stmt // on the writer the store's own; kept apart because those may do anything
	clock  uint64           // grows with every use of a statement; orders them for eviction
	open   []*rows
	args   []driver.NamedValue // reused by exec
	rules  *rules              // nil but on the writer
	closed bool
}

// spoil is what a test makes of a DSN, to see that the settings are verified.
var spoil = func(dsn string) string { return dsn }

// dial opens a connection to the database and checks its settings.
func dial(ctx context.Context, path string, r role) (*conn, error) {
	connector, err := sqlite.NewConnector(spoil(dsn(path, r)))
	if err != nil {
		return nil, err
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	inner, ok := raw.(innerConn)
	if !ok {
		_ = raw.Close()
		return nil, errors.New("the SQLite driver lacks an interface the store needs")
	}
	c := &conn{inner: inner, stmts: make(map[string]*stmt), own: make(map[string]*stmt)}
	if err := c.verify(ctx, r); err != nil {
		_ = c.Close()
		return nil, err
	}
	c.forget()
	c.pool = sql.OpenDB(only{c})
	if c.pinned, err = c.pool.Conn(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// only is a connector that hands out one connection.
type only struct{ c *conn }

func (o only) Connect(context.Context) (driver.Conn, error) { return o.c, nil }
func (o only) Driver() driver.Driver                        { return nil }

// exec runs a statement and returns the number of rows it changed.
func (c *conn) exec(query string, args []any) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	c.args = c.args[:0]
	for i, a := range args {
		v, err := bindable(a)
		if err != nil {
			return 0, fmt.Errorf("argument $%d: %w", i+1, err)
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	n, err := c.execStmt(s, c.args)
	clear(c.args)
	return n, err
}

func (c *conn) execStmt(s *stmt, args []driver.NamedValue) (int64, error) {
	defer c.release(s)
	if err := c.rules.admit(s); err != nil {
		return 0, err
	}
	res, err := s.inner.ExecContext(context.Background(), args)
	c.rules.settle(s)
	if err != nil {
		return 0, c.rules.explain(err)
	}
	return res.RowsAffected()
}

// run executes a statement of the store's own.
func (c *conn) run(query string) error {
	_, err := c.exec(query, nil)
	return err
}

// text returns the first column of a statement's first row, as text.
func (c *conn) text(ctx context.Context, query string, args ...driver.NamedValue) (string, error) {
	r, err := c.QueryContext(ctx, query, args)
	if err != nil {
		return "", err
	}
	defer r.Close()
	dest := make([]driver.Value, len(r.Columns()))
	if err := r.Next(dest); errors.Is(err, io.EOF) {
		return "", errNoRow
	} else if err != nil {
		return "", err
	}
	if b, ok := dest[0].([]byte); ok {
		return string(b), nil
	}
	return fmt.Sprint(dest[0]), nil
}

// QueryContext implements driver.QueryerContext over the statement cache.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // also a transaction that is over: the connection is somebody else's now
	}
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	if err := c.rules.admit(s); err != nil {
		c.release(s)
		return nil, err
	}
	inner, err := s.inner.QueryContext(ctx, args)
	c.rules.settle(s)
	if err != nil {
		c.release(s)
		return nil, c.rules.explain(err)
	}
	r := &rows{Rows: inner, c: c, s: s}
	c.open = append(c.open, r)
	return r, nil
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *conn) CheckNamedValue(v *driver.NamedValue) (err error) {
	v.Value, err = bindable(v.Value)
	return err
}

// Prepare, Begin and Close implement driver.Conn; only Close is ever used.
func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }

// Begin is refused: transactions are the store's business.
func (c *conn) Begin() (driver.Tx, error) { return nil, ErrNested }

// Close ends all statements and the connection. It may be called twice.
func (c *conn) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.closeRows()
	c.forget()
	return c.inner.Close()
}

// forget drops all prepared statements.
func (c *conn) forget() {
	for _, kept := range []map[string]*stmt{c.stmts, c.own} {
		for _, s := range kept {
			_ = s.inner.Close()
		}
		clear(kept)
	}
}

// shut closes the connection and what database/sql keeps for it. The pinned
// connection itself is left alone: a QueryRow nobody scanned holds its lock
// for ever.
func (c *conn) shut() error {
	err := c.Close()
	if c.pool != nil {
		_ = c.pool.Close()
	}
	return err
}

// closeRows ends every result still open and returns how many there were.
func (c *conn) closeRows() int {
	left := slices.Clone(c.open)
	for _, r := range left {
		_ = r.Close()
	}
	return len(left)
}

// rows is a result that gives its statement back when closed.
type rows struct {
	driver.Rows
	c      *conn
	s      *stmt
	closed bool
}

// Next refuses after the end of the transaction it belongs to. TEXT is handed
// on as bytes: database/sql scans those into strings, named strings and
// json.RawMessage alike, but text only into strings.
func (r *rows) Next(dest []driver.Value) error {
	if r.closed {
		return ErrTxDone
	}
	if err := r.Rows.Next(dest); err != nil {
		return err
	}
	for i, v := range dest {
		if text, ok := v.(string); ok {
			dest[i] = []byte(text)
		}
	}
	return nil
}

// Close may be called twice.
func (r *rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	if i := slices.Index(r.c.open, r); i >= 0 {
		r.c.open = slices.Delete(r.c.open, i, i+1)
	}
	err := r.Rows.Close()
	r.c.release(r.s)
	return err
}

// integer returns the first column of a statement's first row.
func (c *conn) integer(query string, args ...driver.NamedValue) (int64, error) {
	r, err := c.QueryContext(context.Background(), query, args)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var dest [1]driver.Value
	if err := r.Next(dest[:]); err != nil {
		return 0, err
	}
	n, ok := dest[0].(int64)
	if !ok {
		return 0, fmt.Errorf("%T where an integer belongs", dest[0])
	}
	return n, nil
}
