package workflow_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/problem"
	"countersign/internal/strictyaml"
	"countersign/internal/workflow"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestCompile_GoldenForms keeps the compiled forms, and so the digests, of
// definitions that are in use: a change here is a change of every digest.
func TestCompile_GoldenForms(t *testing.T) {
	files, err := filepath.Glob("../../examples/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	own, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range append(files, own...) {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w, err := workflow.Compile(name+".yaml", src, catalog())
			if err != nil {
				t.Fatal(err)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, w.Compiled, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteString("\n")
			golden := "testdata/" + name + ".golden.json"
			if *update {
				if err := os.WriteFile(golden, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
				t.Errorf("compiled form (-golden +got):\n%s", diff)
			}
			loaded, err := workflow.Load(w.Compiled)
			if err != nil || loaded.Digest != w.Digest {
				t.Errorf("load: %v", err)
			}
		})
	}
}

func TestDigest_DependsOnMeaningAlone(t *testing.T) {
	one := "format: 1\nworkflow: w\nversion: 1\nsteps:\n- id: a\n  call: docs.collect\n  with: {x: 1, y: [\"${input}\"]}\n  timeout: 90s\n"
	same := "# a comment\nsteps:\n  - timeout: 1m30s # another\n    with:\n      y: ['${input}']\n      x: 1\n    call: \"docs.collect\"\n    id: a\n    retry: {max_attempts: 3, base: 1s, max_delay: 30s, budget: 5m}\n    on_error: fail\n    then: next\nversion: 1\nworkflow: w\nformat: 1\ninput: {type: object, additionalProperties: false}\n"
	other := strings.Replace(one, "90s", "91s", 1)
	digest := func(src string) string {
		w, err := workflow.Compile("w.yaml", []byte(src), catalog())
		if err != nil {
			t.Fatal(err)
		}
		return w.Digest
	}
	if digest(one) != digest(same) {
		t.Error("comments, key order, quoting and written defaults change the digest")
	}
	if digest(one) == digest(other) {
		t.Error("another timeout has the same digest")
	}
}

func TestLoad_RefusesWhatCompileDoesNotWrite(t *testing.T) {
	w := compile(t, `[{id: a, set: 1, then: {goto: a, max_passes: 2}, when: "true"}]`)
	good := string(w.Compiled)
	cases := map[string]string{
		"":                                    "",
		"null":                                "null",
		"an unknown field":                    strings.Replace(good, `{`, `{"aaa":1,`, 1),
		"another form":                        strings.Replace(good, "countersign.workflow/1", "countersign.workflow/9", 1),
		"white space":                         good + " ",
		"an unknown kind":                     strings.Replace(good, `"kind":"set"`, `"kind":"zap"`, 1),
		"a goto to nowhere":                   strings.Replace(good, `"to":"a"`, `"to":"b"`, 1),
		"a loop without a bound":              strings.Replace(good, `"max_passes":2,`, ``, 1),
		"a step without a rule for errors":    strings.Replace(good, `"default":{"do":"fail"}`, ``, 1),
		"an expression that does not compile": strings.Replace(good, `"when":"true"`, `"when":"tru("`, 1),
	}
	for name, src := range cases {
		if src == good {
			t.Fatalf("%s: the case changes nothing in %s", name, good)
		}
		if _, err := workflow.Load(json.RawMessage(src)); err == nil {
			t.Errorf("%s is loaded: %s", name, src)
		}
	}
}

func TestPrepareInput(t *testing.T) {
	w := example(t, "weekly-report")
	got, err := w.PrepareInput(nil)
	if err != nil || string(got) != `{"folder":".","week":"2026-W48"}` {
		t.Errorf("no input gives %s, %v; want the defaults", got, err)
	}
	got, err = w.PrepareInput(json.RawMessage(`{ "week": "2026-W49", "folder": "x" }`))
	if err != nil || string(got) != `{"folder":"x","week":"2026-W49"}` {
		t.Errorf("input gives %s, %v; want it canonical", got, err)
	}
	for _, bad := range []string{`{"week":"49"}`, `{"weak":"2026-W49"}`, `[]`, `{"week":"2026-W49","week":"2026-W50"}`, `{`, `{} {}`} {
		if _, err := w.PrepareInput(json.RawMessage(bad)); err == nil {
			t.Errorf("input %s is accepted", bad)
		} else if _, ok := errors.AsType[*problem.Error](err); !ok {
			t.Errorf("input %s: %v is not a problem for a person", bad, err)
		}
	}
}

func TestPrepareInput_WithoutASchemaTakesNothing(t *testing.T) {
	w, err := workflow.Compile("w.yaml", []byte("format: 1\nworkflow: w\nversion: 1\nsteps: [{id: a, set: 1}]"), catalog())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := w.PrepareInput(nil); err != nil || string(got) != `{}` {
		t.Errorf("no input: %s, %v", got, err)
	}
	if _, err := w.PrepareInput(json.RawMessage(`{"x":1}`)); err == nil {
		t.Error("an input that no schema describes is accepted")
	}
}

func TestWarnings(t *testing.T) {
	w := compile(t, "- {id: a, action: kb.publish}\n- {id: b, approve: {document: 1}}")
	want := "w.yaml:7:3: nothing after this approval changes anything in the world: it asks about what is already done"
	found := false
	for _, p := range w.Warnings {
		found = found || strictyaml.Problems{p}.Error() == want
	}
	if !found {
		t.Errorf("warnings:\n%v\nwant among them:\n%s", w.Warnings, want)
	}
	w, err := workflow.Compile("w.yaml", []byte("format: 1\nworkflow: w\nversion: 1\ninput: {type: object, properties: {a: {type: string, pattern: '[a-z]+'}}}\nsteps: [{id: a, set: 1}]"), catalog())
	if err != nil || len(w.Warnings) != 2 {
		t.Errorf("an open object and an unanchored pattern: %v, warnings\n%v", err, w.Warnings) // H13
	}
}

func TestWarnings_OfAnOutputThatMayBeNull(t *testing.T) {
	has := func(expression string) bool {
		w := compile(t, "- {id: a, when: input.x, call: docs.collect}\n- {id: b, set: \""+expression+"\"}")
		for _, p := range w.Warnings {
			if strings.Contains(p.Message, "step a may be skipped") {
				return true
			}
		}
		return false
	}
	for expression, want := range map[string]bool{
		"${steps.a.output.n}":   true,
		"${steps.a.output[0]}":  true,
		"${steps.a.output}":     false,
		"'steps.a.output.n'":    false,
		"${'steps.a.output.n'}": false,
		"${steps.a.status == 'completed' ? steps.a.output.n : 0}": false,
		"${has(steps.a.output.n)}":                                false,
	} {
		if got := has(expression); got != want {
			t.Errorf("%s: warning %v, want %v", expression, got, want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	files, _ := filepath.Glob("../../examples/workflows/*.yaml")
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte(document("- {id: a, call: docs.collect, on_error: {denied: end, default: {goto: a, max_passes: 2}}}")))
	f.Add([]byte(document("- {id: a, approve: {document: {x: \"${run.id}\"}, guards: [b]}, on_expire: {ask_again: true, max_passes: 2}}\n- {id: b, action: kb.publish}")))
	f.Fuzz(func(t *testing.T, src []byte) {
		w, err := workflow.Compile("f.yaml", src, catalog())
		if err != nil {
			if p, ok := errors.AsType[strictyaml.Problems](err); !ok || len(p) == 0 {
				t.Fatalf("the error is %T: %v", err, err)
			}
			return
		}
		loaded, err := workflow.Load(w.Compiled)
		if err != nil || loaded.Digest != w.Digest {
			t.Fatalf("load what was compiled: %v\n%s", err, w.Compiled)
		}
		w.Graph()
		if _, err := w.Next(t.Context(), w.Begin(), workflow.RunInfo{}, nil, begin); err != nil {
			t.Fatal(err)
		}
	})
}
