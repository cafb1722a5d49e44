package definitions_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"countersign/internal/definitions"
)

const noteTool = `format: 1
tool: note.append
version: 1
semantic_version: 1
effect: write
risk: low
params: {type: object, additionalProperties: false, required: [text], properties: {text: {type: string}}}
summary: "Append a note"
target: "notes"
impact: "A line is added."
http: {method: POST, url: "https://notes.example.org/", body: "${params}", timeout: 1s, ok: "status == 201"}
`

// A deny rule with a misspelled tool denies nothing, so it is worth a warning.
func TestRead_ARuleThatCanNeverMatchIsWarnedOf(t *testing.T) {
	for when, want := range map[string]string{
		`tool == 'note.append' && risk in ['low', 'high'] && weekday != 'sunday'`: "",
		`tool == 'note.apend'`:         `policies/p.yaml: the rule "notes" compares tool with "note.apend", and there is no such tool; did you mean "note.append"?`,
		`risk in ['low', 'hihg']`:      `compares risk with "hihg", and there is no such risk; did you mean "high"?`,
		`weekday == 'Sun'`:             `compares weekday with "Sun"`,
		`tool != 'payroll.run'`:        `compares tool with "payroll.run", and there is no such tool`,
		`target == 'note.apend'`:       "",
		`workflow == '' || risk == ''`: "",
	} {
		policy := "format: 1\npolicy: default\nversion: 1\nrules:\n  - name: notes\n    when: \"" + when + "\"\n    deny: true\n"
		b, err := definitions.Read(definitions.Folders{Tools: fstest.MapFS{"note.yaml": {Data: []byte(noteTool)}}, Policies: fstest.MapFS{"p.yaml": {Data: []byte(policy)}}})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		got := strings.Join(b.Warnings, "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: warnings %q, want %q", when, got, want)
		}
	}
}

func TestRead_TheExamplesAreWithoutWarning(t *testing.T) {
	b, err := definitions.Read(definitions.Below(os.DirFS("../../examples")))
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Warnings) > 0 {
		t.Errorf("warnings: %q", b.Warnings)
	}
}

// A fault in a tool is reported at the tool, and nobody is told that the tool
// does not exist.
func TestRead_ABrokenToolIsOneFault(t *testing.T) {
	flow := "format: 1\nworkflow: take-note\nversion: 1\ntitle: Take a note\nsteps:\n  - id: note\n    action: note.append\n    with: {text: \"x\"}\n"
	for name, broken := range map[string]string{
		"a wrong value":  strings.Replace(noteTool, "risk: low", "risk: lowish", 1),
		"an unknown key": noteTool + "colour: red\n",
	} {
		_, err := definitions.Read(definitions.Folders{Tools: fstest.MapFS{"note.yaml": {Data: []byte(broken)}}, Workflows: fstest.MapFS{"w.yaml": {Data: []byte(flow)}}})
		if err == nil || strings.Contains(err.Error(), "there is no tool") || !strings.Contains(err.Error(), "tools/note.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
