package store

import (
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"

	"countersign/internal/problem"
)

// Problems a person may see.
var (
	// ErrConflict is what ExecOne returns when it did not change exactly one row.
	ErrConflict error = problem.New(problem.Conflict, "changed_meanwhile", "This was changed a moment ago. Look at it again, then decide.")
	// ErrBusyQueue refuses an Update because too many are waiting already.
	ErrBusyQueue error = problem.New(problem.Unavailable, "queue_full", "Too many changes are waiting to be written. Nothing was changed; try again in a moment.")
	// ErrBusy refuses an Update because another process held the database longer than the busy timeout.
	ErrBusy error = problem.New(problem.Unavailable, "database_busy", "Another program is writing to the database. Nothing was changed; try again in a moment.")
	// ErrDiskFull refuses an Update because the disk is full. Later ones succeed once there is space.
	ErrDiskFull error = problem.New(problem.Unavailable, "disk_full", "The disk is full. Nothing was changed; make space, then try again.")
	// ErrNewer refuses a database that a newer program has written.
	ErrNewer error = problem.New(problem.Unavailable, "newer_database", "The database was written by a newer program.")
	// ErrClosed refuses work on a closed database.
	ErrClosed error = problem.New(problem.Unavailable, "closed", "The console is shutting down. Nothing was changed; try again in a moment.")
)

// Faults of the calling code.
var (
	// ErrUnaudited refuses a transaction that changed a guarded table and recorded no audit entry.
	ErrUnaudited = errors.New("store: a guarded table was changed without an audit entry")
	// ErrNested refuses an Update or View opened inside another one.
	ErrNested = errors.New("store: transactions do not nest: pass on the one that is open")
	// ErrTxDone is returned by a transaction, view or result used after its end.
	ErrTxDone = errors.New("store: used after its transaction ended")
	// ErrLeakedRows refuses a transaction that left a result set open.
	ErrLeakedRows = errors.New("store: a result set was left open")
)

// ErrNotFound is what scanning a QueryRow without a row returns.
var ErrNotFound = sql.ErrNoRows

// PanicError is a panic of a transaction's function; the transaction was
// rolled back and the writer lives on.
type PanicError struct {
	Value any
	Stack []byte
}

// Error shows the value; the stack is for the log.
func (e *PanicError) Error() string { return fmt.Sprintf("store: transaction panicked: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func newPanic(v any) *PanicError { return &PanicError{Value: v, Stack: debug.Stack()} }

// SQLite result codes (https://www.sqlite.org/rescode.html); the low byte of
// an extended code is its primary code.
const (
	codeBusy       = 5
	codeNoMem      = 7
	codeIOErr      = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeConstraint = 19
	codeAuth       = 23

	codePrimaryKey = 1555
	codeUnique     = 2067
)

// coded is *sqlite.Error, which tests cannot make.
type coded interface {
	error
	Code() int
}

// code returns the extended result code in err's chain, or 0.
func code(err error) int {
	if e, ok := errors.AsType[coded](err); ok {
		return e.Code()
	}
	return 0
}

func primary(err error) int { return code(err) & 0xff }

// because is a copy of one of the problems above with its cause.
func because(err, cause error) error { return err.(*problem.Error).Because(cause) }

// named gives the failures a person can do something about their problem.
func named(err error) error {
	switch primary(err) {
	case codeFull:
		return because(ErrDiskFull, err)
	case codeBusy:
		return because(ErrBusy, err)
	}
	return err
}

// IsUnique reports whether err is a violated UNIQUE or PRIMARY KEY constraint.
func IsUnique(err error) bool {
	c := code(err)
	return c == codeUnique || c == codePrimaryKey
}
