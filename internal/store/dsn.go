package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"modernc.org/sqlite"
)

// walMax is where the WAL file is cut when there is a quiet moment, and the
// size it is cut to when it is reused (journal_size_limit), in bytes.
const walMax = 64 << 20

// busyTimeout is how long a statement waits for another process, in milliseconds.
const busyTimeout = "5000"

// role is what a connection is for.
type role int

const (
	roleWriter role = iota
	roleReader      // read only by file mode and by pragma
	roleCopier      // reads the file, writes a copy: VACUUM INTO is refused under query_only
)

// pragma is a setting every connection must have, and how it reads back.
type pragma struct{ name, set, want string }

// pragmas are per connection, so they travel in the DSN and are read back on
// each new connection. WAL and FULL make an acknowledged commit survive power
// loss; the others refuse damaged or hostile database files early.
func pragmas(r role) []pragma {
	list := []pragma{
		{"busy_timeout", busyTimeout, busyTimeout},
		{"synchronous", "FULL", "2"},
		{"foreign_keys", "ON", "1"},
		{"temp_store", "MEMORY", "2"},
		{"trusted_schema", "OFF", "0"},
		{"cell_size_check", "ON", "1"},
		{"journal_size_limit", fmt.Sprint(walMax), fmt.Sprint(walMax)},
	}
	switch r {
	case roleWriter:
		return append(list, pragma{"journal_mode", "WAL", "wal"}, pragma{"cache_size", "-16000", "-16000"},
			pragma{"secure_delete", "ON", "1"})
	case roleReader:
		return append(list, pragma{"journal_mode", "", "wal"}, pragma{"cache_size", "-8000", "-8000"}, pragma{"query_only", "ON", "1"})
	}
	return append(list, pragma{"journal_mode", "", "wal"})
}

// dsn names the database for the driver. A plain path would lose mode=ro, so
// the name is always a file: URI.
func dsn(path string, r role) string {
	q := url.Values{"_defensive": {"1"}, "_dqs": {"0"}, "_error_rc": {"1"}}
	if r == roleWriter {
		q.Set("mode", "rwc")
		q.Set("_txlock", "immediate")
	} else {
		q.Set("mode", "ro")
	}
	for _, p := range pragmas(r) {
		if p.set != "" {
			q.Add("_pragma", p.name+"("+p.set+")")
		}
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// setUpDriver switches on what is process-wide. Without OFD locks, closing
// any descriptor of the database file anywhere in the process would silently
// drop SQLite's locks; where the system has none, POSIX locks stay.
var setUpDriver = sync.OnceValue(func() error {
	sqlite.StrictPragmas(true)
	if _, err := sqlite.OFDLocking(true); err != nil && !errors.Is(err, sqlite.ErrOFDLockingUnavailable) {
		return fmt.Errorf("use locks that survive a close: %w", err)
	}
	return nil
})

// verify reads every setting back: a misspelled one would otherwise be
// ignored silently.
func (c *conn) verify(ctx context.Context, r role) error {
	for _, p := range pragmas(r) {
		got, err := c.text(ctx, "PRAGMA "+p.name)
		if err != nil {
			return fmt.Errorf("read pragma %s: %w", p.name, err)
		}
		if !strings.EqualFold(got, p.want) {
			return fmt.Errorf("pragma %s is %q on a connection, want %q", p.name, got, p.want)
		}
	}
	if _, err := c.text(ctx, `SELECT "no_such_column"`); err == nil {
		return errors.New("double-quoted text is taken for a string on a connection (_dqs=0 has no effect)")
	}
	return c.verifyDefensive(ctx)
}

// verifyDefensive checks the flag by what it forbids; it cannot be read.
func (c *conn) verifyDefensive(ctx context.Context) error {
	if _, err := c.text(ctx, "PRAGMA writable_schema=ON"); err != nil && !errors.Is(err, errNoRow) {
		return fmt.Errorf("probe defensive mode: %w", err)
	}
	got, err := c.text(ctx, "PRAGMA writable_schema")
	if err != nil {
		return fmt.Errorf("probe defensive mode: %w", err)
	}
	if !slices.Contains([]string{"0", ""}, got) {
		return errors.New("the schema is writable on a connection (_defensive=1 has no effect)")
	}
	return nil
}
