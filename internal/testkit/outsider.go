package testkit

import (
	"database/sql"
	"fmt"
	"testing"

	_ "modernc.org/sqlite" // as somebody with the file and a shell would
)

// Outsider runs statements on the database file as somebody who holds it and
// not the program: through a connection of their own, with every trigger
// dropped first. It is how tests tamper.
func Outsider(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatalf("open %s as an outsider: %v", path, err)
	}
	defer db.Close()
	for _, name := range triggers(t, db) {
		if _, err := db.Exec(`DROP TRIGGER "` + name + `"`); err != nil {
			t.Fatalf("drop trigger %s: %v", name, err)
		}
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("as an outsider, %s: %v", s, err)
		}
	}
}

func triggers(t testing.TB, db *sql.DB) (names []string) {
	t.Helper()
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'trigger'`)
	if err != nil {
		t.Fatalf("list triggers: %v", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatalf("list triggers: %v", err)
		}
		names = append(names, name)
	}
	return names
}

// OtherByte is the SQL of a BLOB column in which the byte at position at, from
// 1, is another one than before, whatever it was.
func OtherByte(column string, at int) string {
	return fmt.Sprintf(`CAST(substr(%[1]s, 1, %[2]d - 1) || CASE substr(%[1]s, %[2]d, 1) WHEN x'00' THEN x'01' ELSE x'00' END || substr(%[1]s, %[2]d + 1) AS BLOB)`, column, at)
}
