// Package testkit opens real databases for tests and checks them at the end.
//
// It guarantees that every test which opened a database through it also
// checked its integrity. Nothing of the product may import it.
package testkit

import (
	"testing"

	"countersign/internal/store"
)

// Open opens a new database in the test's folder with the lines.
func Open(t testing.TB, lines ...store.Line) *store.DB { panic("building") }

// OpenAt opens the database at path, new or not.
func OpenAt(t testing.TB, path string, lines ...store.Line) *store.DB { panic("building") }

// OpenWith opens a database with all options said; Path may be empty.
func OpenWith(t testing.TB, o store.Options) *store.DB { panic("building") }
