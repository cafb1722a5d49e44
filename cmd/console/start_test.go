package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// What docs/start.md tells people to write down passes the check it names.
func TestStart_DefinitionsOfTheGuideHaveNoErrors(t *testing.T) {
	raw, err := os.ReadFile("../../docs/start.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllSubmatch(raw, -1)
	if len(files) != 4 {
		t.Fatalf("docs/start.md has %d files, want a tool, a policy, a workflow and the configuration", len(files))
	}
	for _, f := range files {
		path := filepath.Join(dir, string(f[1]))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f[2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, faults bytes.Buffer
	if code := run([]string{"check", dir}, env{out: &out, err: &faults}); code != exitOK {
		t.Errorf("console check ends with %d:\n%s%s", code, &out, &faults)
	}
}
