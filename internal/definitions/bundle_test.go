package definitions_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"countersign/internal/definitions"
)

// Only the policy named default is asked, so a file under another name is
// worth a word: somebody may think that it guards something.
func TestRead_APolicyThatIsNeverAskedIsWarnedOf(t *testing.T) {
	src, err := os.ReadFile("../../examples/policies/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"default": 0, "stricter": 1} {
		file := strings.Replace(string(src), "policy: default", "policy: "+name, 1)
		b, err := definitions.Read(definitions.Folders{Policies: fstest.MapFS{"p.yaml": {Data: []byte(file)}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Warnings) != want {
			t.Errorf("a policy named %s: warnings %q, want %d", name, b.Warnings, want)
		}
	}
}
