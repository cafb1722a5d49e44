package store

import "time"

// idleAfter is how long nothing must have been written for the writer to
// move the log into the database by itself. SQLite also does it every 1000
// pages.
const idleAfter = time.Second

// checkpoint moves what readers do not need out of the write-ahead log, and
// cuts the log if it has grown past walMax. It never waits for a reader.
func (w *writer) checkpoint() {
	w.dirty = false
	w.pragma("PRAGMA wal_checkpoint(PASSIVE)")
	if walBytes(w.path) > walMax {
		w.pragma("PRAGMA busy_timeout(0)")
		w.pragma("PRAGMA wal_checkpoint(TRUNCATE)")
		w.pragma("PRAGMA busy_timeout(" + busyTimeout + ")")
	}
}

func (w *writer) pragma(text string) {
	if err := w.conn.run(text); err != nil {
		w.log.Warn("checkpoint", "statement", text, "error", err)
	}
}
