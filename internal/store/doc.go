// Package store is the database: one SQLite file with one writer and a pool
// of readers. Only here is a driver imported.
//
// It guarantees that
//   - a transaction that returned nil is on disk (WAL, synchronous=FULL), and
//     one that returned an error left nothing behind;
//   - logical transactions run one at a time, in the order they were queued,
//     and share physical commits: each is a savepoint of its group;
//   - once a transaction has started it runs to its end, whatever becomes of
//     the submitter's context, and the submitter is told its true result;
//   - Tx.Now never goes back, across restarts and processes too;
//   - a change of a guarded table without an audit entry is not committed;
//   - after a commit whose outcome is unknown the process stops.
//
// It must not know any table but its own two (migration, store_clock), nor
// what its callers keep.
package store
