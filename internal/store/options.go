package store

import (
	"io/fs"
	"log/slog"
	"os"
	"time"
)

// Options say which database to open and how. Only Path is needed.
type Options struct {
	Path     string                   // file path of the database; its folder must exist
	Lines    []Line                   // migration lines, in order; the store's own comes before them
	Now      func() time.Time         // nil: time.Now
	Fault    func(point string) error // tests only: the points are the Fault constants
	Logger   *slog.Logger             // nil: slog.Default()
	MaxBatch int                      // logical transactions per physical commit; 0: DefaultMaxBatch
	MaxWork  time.Duration            // work after which a commit takes no more of them; 0: DefaultMaxWork
	MaxQueue int                      // transactions that may wait; 0: DefaultMaxQueue
	OnFatal  func(error)              // a commit failed and its outcome is unknown; nil: log, then os.Exit(ExitFatal)
}

// Limits of the writer and the readers.
const (
	// DefaultMaxBatch and DefaultMaxWork end a group: together they keep the
	// wait for a commit under 20 ms at the 99th percentile on two cores.
	DefaultMaxBatch = 96
	DefaultMaxWork  = 5 * time.Millisecond
	// DefaultMaxQueue is about a third of a second of writing.
	DefaultMaxQueue = 4096
	// readerCount is how many views run at once; more wait.
	readerCount = 8
	// readerWaitMax is how long a view waits for a reader before it is refused.
	readerWaitMax = 10 * time.Second
	// hintsMax bounds the AfterCommit functions that wait to run; hints beyond are dropped.
	hintsMax = 1 << 16
	// statementsMax is the number of prepared statements each connection keeps.
	statementsMax = 512
)

// ExitFatal is the exit status after a commit whose outcome is unknown
// (EX_SOFTWARE of sysexits.h).
const ExitFatal = 70

// Fault points. An error returned for one is treated as that failure. There
// are also "exec:<table>" before a statement that writes the table, and
// "migrate:<line>:<NNNN>:<stage>" with the stages begin, applied, recorded
// (before the commit) and committed.
const (
	FaultBeforeCommit = "before-commit"  // nothing is committed; every submitter of the group gets the error
	FaultAfterCommit  = "after-commit"   // everything is committed; the answers and hints are lost
	FaultBackup       = "backup:written" // the copy is complete under its temporary name
)

// Line is one package's migrations: files NNNN_name.sql in Dir of FS, applied
// in order of their number. Guarded names the tables whose change needs an
// audit entry in the same transaction.
type Line struct {
	Name    string
	FS      fs.FS
	Dir     string
	Guarded []string
}

func (o *Options) setDefaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.MaxBatch <= 0 {
		o.MaxBatch = DefaultMaxBatch
	}
	if o.MaxWork <= 0 {
		o.MaxWork = DefaultMaxWork
	}
	if o.MaxQueue <= 0 {
		o.MaxQueue = DefaultMaxQueue
	}
	if o.OnFatal == nil {
		log := o.Logger
		o.OnFatal = func(err error) {
			log.Error("commit failed with unknown outcome, stopping", "error", err)
			os.Exit(ExitFatal)
		}
	}
}

func (o *Options) fault(point string) error {
	if o.Fault == nil {
		return nil
	}
	return o.Fault(point)
}
