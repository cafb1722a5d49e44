package store

import (
	"fmt"
	"slices"
	"strings"

	"modernc.org/sqlite"
)

// mode is whose statements run on the writer's connection.
type mode int

const (
	modeOwn     mode = iota // the store's: anything
	modeTx                  // a transaction's: no transaction control, no schema change
	modeMigrate             // a migration's: no transaction control
)

// rules watch the statements of the writer's connection while SQLite compiles
// them: what they may do, and which tables they change. SQLite itself reports
// it, so triggers, cascades and WITH are seen too. All methods work on nil,
// which watches nothing.
type rules struct {
	mode    mode
	guarded map[string]bool
	fault   func(point string) error
	tx      *Tx   // who the statements belong to in modeTx
	target  *stmt // statement being compiled or run
	denied  string
}

// ours reports whether the store's own statements run on the writer.
func (r *rules) ours() bool { return r != nil && r.mode == modeOwn }

// authorize is SQLite's authorizer callback.
func (r *rules) authorize(action sqlite.AuthorizerActionCode, arg1, arg2, _, _ string) sqlite.AuthorizerReturnCode {
	if r.mode == modeOwn {
		return sqlite.AuthorizerOK
	}
	switch action {
	case sqlite.AuthInsert, sqlite.AuthUpdate, sqlite.AuthDelete:
		r.note(arg1)
		return sqlite.AuthorizerOK
	case sqlite.AuthRead, sqlite.AuthSelect, sqlite.AuthFunction, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthTransaction, sqlite.AuthSavepoint, sqlite.AuthAttach, sqlite.AuthDetach, sqlite.AuthPragma:
		if r.mode == modeMigrate && action == sqlite.AuthPragma && arg1 == "quick_check" {
			return sqlite.AuthorizerOK // ALTER TABLE checks the rows it changes with it
		}
		r.denied = strings.TrimSpace(forbidden[action] + " " + arg1 + " " + arg2)
		return sqlite.AuthorizerDeny
	}
	if r.mode == modeMigrate {
		return sqlite.AuthorizerOK
	}
	r.denied = "a change of the schema"
	return sqlite.AuthorizerDeny
}

var forbidden = map[sqlite.AuthorizerActionCode]string{
	sqlite.AuthTransaction: "transaction control",
	sqlite.AuthSavepoint:   "savepoint",
	sqlite.AuthAttach:      "attach",
	sqlite.AuthDetach:      "detach",
	sqlite.AuthPragma:      "pragma",
}

func (r *rules) note(table string) {
	s := r.target
	if s == nil || strings.HasPrefix(table, "sqlite_") || slices.Contains(s.writes, table) {
		return
	}
	s.writes = append(s.writes, table)
	if s.guarded == "" && r.guarded[table] {
		s.guarded = table
	}
}

// watch attributes what is compiled from here to the returned call to s.
func (r *rules) watch(s *stmt) (end func()) {
	if r == nil {
		return func() {}
	}
	r.target, r.denied = s, ""
	return r.unwatch
}

func (r *rules) unwatch() { r.target = nil }

// admit is asked before a statement runs.
func (r *rules) admit(s *stmt) error {
	if r == nil || r.mode != modeTx {
		return nil
	}
	r.target, r.denied = s, ""
	if r.fault == nil {
		return nil
	}
	for _, table := range s.writes {
		if err := r.fault("exec:" + table); err != nil {
			return err
		}
	}
	return nil
}

// settle marks the transaction by what the statement changes, after it ran:
// SQLite may have compiled it anew.
func (r *rules) settle(s *stmt) {
	if r == nil || r.mode != modeTx {
		return
	}
	r.target = nil
	if len(s.writes) == 0 || r.tx == nil {
		return
	}
	r.tx.wrote = true
	if s.guarded != "" {
		r.tx.guarded = s.guarded
	}
}

// explain says what was refused, which SQLite does not.
func (r *rules) explain(err error) error {
	if r == nil || r.denied == "" || primary(err) != codeAuth {
		return err
	}
	return fmt.Errorf("store: %s is not allowed here: %w", r.denied, err)
}
