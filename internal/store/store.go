package store

import (
	"context"
	"database/sql"
	"io/fs"
	"log/slog"
	"time"
)

// Options say which database to open and how.
type Options struct {
	Path     string                   // file path of the database
	Lines    []Line                   // migration lines, in order; the store's own comes before them
	Now      func() time.Time         // nil: time.Now
	Fault    func(point string) error // tests only; see the Fault points in fault.go
	Logger   *slog.Logger             // nil: slog.Default()
	MaxBatch int                      // logical transactions per commit; 0: DefaultMaxBatch
	MaxQueue int                      // waiting transactions; 0: DefaultMaxQueue
	OnFatal  func(error)              // a commit's outcome is unknown; nil: log and os.Exit(70)
}

// Limits.
const (
	DefaultMaxBatch = 96
	DefaultMaxQueue = 4096
)

// Line is one package's migrations: files NNNN_name.sql in Dir of FS, applied
// in order. Guarded names the tables whose change needs an audit entry in the
// same transaction.
type Line struct {
	Name    string
	FS      fs.FS
	Dir     string
	Guarded []string
}

// DB is an open database.
type DB struct{}

// Tx is a logical transaction.
type Tx struct{}

// Querier is what can only read.
type Querier interface {
	Query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) *sql.Row
}

// Stats are counters.
type Stats struct{}

func Open(ctx context.Context, o Options) (*DB, error) { panic("building") }
func (db *DB) Close() error                            { panic("building") }
func (db *DB) Update(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	panic("building")
}
func (db *DB) View(ctx context.Context, fn func(ctx context.Context, q Querier) error) error {
	panic("building")
}
func (db *DB) BeforeCommit(fn func(ctx context.Context, tx *Tx) error) { panic("building") }
func (db *DB) Backup(ctx context.Context, dst string) error            { panic("building") }
func (db *DB) Stats() Stats                                            { panic("building") }
func (db *DB) CheckIntegrity(ctx context.Context) error                { panic("building") }
func (db *DB) AcceptClock(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	panic("building")
}
func (tx *Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	panic("building")
}
func (tx *Tx) QueryRow(ctx context.Context, query string, args ...any) *sql.Row { panic("building") }
func (tx *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	panic("building")
}
func (tx *Tx) ExecOne(ctx context.Context, query string, args ...any) error { panic("building") }
func (tx *Tx) Now() time.Time                                               { panic("building") }
func (tx *Tx) ClockSuspect() bool                                           { panic("building") }
func (tx *Tx) AfterCommit(fn func())                                        { panic("building") }
func (tx *Tx) Audited()                                                     { panic("building") }

// Micros is how a time is stored: microseconds since 1970, UTC.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// FromMicros is the time of a stored number of microseconds, in UTC.
func FromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

// FolderLock is held by the only process that drives.
type FolderLock struct{}

// HeldError says who holds the folder.
type HeldError struct {
	Holder string
	Host   string
	PID    int
	Since  time.Time
}

func (e *HeldError) Error() string                                 { return "held" }
func AcquireFolder(dir string, holder string) (*FolderLock, error) { panic("building") }
func (l *FolderLock) Epoch() int64                                 { panic("building") }
func (l *FolderLock) Release() error                               { panic("building") }
