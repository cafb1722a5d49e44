package testkit

import (
	"os"
	"strings"
	"testing"
)

// Bytes returns everything the database at path has on disk: the file and its
// write-ahead log. It is for looking for what must not be there.
func Bytes(t testing.TB, path string) string {
	t.Helper()
	var all strings.Builder
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(path + suffix)
		if err != nil && !os.IsNotExist(err) {
			t.Fatalf("read database: %v", err)
		}
		all.Write(raw)
	}
	return all.String()
}
