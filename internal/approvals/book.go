package approvals

import (
	"embed"

	"countersign/internal/problem"
	"countersign/internal/store"
)

//go:embed migrations
var migrations embed.FS

// Migrations is this package's line of the database schema. Every change of
// its tables needs an audit entry in the same transaction.
var Migrations = store.Line{Name: "approvals", FS: migrations, Dir: "migrations", Guarded: []string{
	"request", "revision", "decision", "retraction", "decision_entry", "ruling_entry", "extension", "first_view", "remark"}}

// Book is the stored requests. It holds nothing but where to ask about people
// and is safe for concurrent use.
type Book struct{ people People }

// New returns a book that asks people who may decide.
func New(people People) *Book { return &Book{people} }

// timeForm is how times are written in sentences.
const timeForm = "2006-01-02 15:04:05 MST"

// The problems that callers make themselves or branch on. Returned problems
// are copies with details and their own sentences.
var (
	// ErrNotFound: no such request in this tenant.
	ErrNotFound = problem.New(problem.NotFound, "not_found", "There is no such approval request here.")
	// ErrStaleDigest: the decision was made on another revision. Details:
	// digest and revision (the current ones) and changes ([]Change).
	ErrStaleDigest = problem.New(problem.Conflict, "stale_digest", "This changed while you were looking at it. Look at what is new, then decide; what you typed is kept.")
	// ErrAlreadyDecided details: decision, with person, name, verdict, decided_at and revision.
	ErrAlreadyDecided = problem.New(problem.Conflict, "already_decided", "This was decided already.")
	// ErrExpired details: decide_by or execute_by.
	ErrExpired = problem.New(problem.Conflict, "expired", "The time to decide this is over.")
	// ErrRunNotWaiting: the request was withdrawn, or its run was cancelled or moved on. Details: by, at, why.
	ErrRunNotWaiting = problem.New(problem.Conflict, "run_not_waiting", "Nothing waits for this decision any more.")
	// ErrClockSuspect refuses decisions until an operator has looked at the clock.
	ErrClockSuspect = problem.New(problem.Unavailable, "clock_suspect", "The clock went back by more than five minutes. Nothing can be decided until it is put right, or an operator accepts its time (console clock accept).")
	// ErrUnreadable: the stored subject is not one any more. Nothing can be
	// decided on it or sent; it can be closed.
	ErrUnreadable = problem.New(problem.Conflict, "unreadable_record", "What was asked cannot be read any more: the stored record was changed. Nothing can be decided on it, and nothing is sent. Tell an operator, who can cancel the run.")
	// ErrAlreadySent refuses to take back or change what may be on its way.
	ErrAlreadySent = problem.New(problem.Conflict, "already_sent", "Too late: it has been sent.")
)

// invalid is a problem about input; callers add the fields.
func invalid(format string, args ...any) *problem.Error {
	return problem.New(problem.Invalid, "invalid", format, args...)
}
