package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"countersign/internal/workflow"

	"github.com/google/go-cmp/cmp"
)

// TestCompile_SaysWhatIsWrongAndWhere has one entry per fault of a definition.
// The first step stands on line 6.
func TestCompile_SaysWhatIsWrongAndWhere(t *testing.T) {
	cases := []struct{ name, steps, want string }{
		{"unknown tool", `- {id: a, call: docs.colect}`,
			`w.yaml:6:17: there is no tool "docs.colect"; did you mean docs.collect?`},
		{"call of a write tool", `- {id: a, call: kb.publish}`,
			"w.yaml:6:17: kb.publish changes the world (effect: write): use `action: kb.publish`, so that it is approved and recorded"},
		{"action of a read tool", `- {id: a, action: docs.collect}`,
			"w.yaml:6:19: docs.collect only reads (effect: read): use `call: docs.collect`"},
		{"unknown parameter", `- {id: a, action: ops.restart, with: {servce: x, service: y}}`,
			`w.yaml:6:47: ops.restart has no parameter "servce"; did you mean service?`},
		{"missing parameter", `- {id: a, action: ops.restart, with: {grace: 1}}`,
			`w.yaml:6:38: ops.restart needs the parameter "service"`},
		{"with is no map", `- {id: a, call: docs.collect, with: [1]}`,
			`w.yaml:6:37: with is a map of parameters, or one expression that gives it`},

		{"duplicate ids, both places", "- {id: a, set: 1}\n- {id: b, set: 1}\n- {id: a, set: 2}", // H01
			`w.yaml:8:8: two steps are called a: the other is at w.yaml:6:8`},
		{"id syntax", `- {id: ../a, set: 1}`, // D29
			`w.yaml:6:8: "../a" is not a step id: a lower-case letter, then up to 62 of a-z, 0-9 and _`},
		{"id too long", `- {id: ` + strings.Repeat("a", 64) + `, set: 1}`,
			`w.yaml:6:8: "` + strings.Repeat("a", 64) + `" is not a step id: a lower-case letter, then up to 62 of a-z, 0-9 and _`},
		{"id that expressions cannot say", `- {id: in, set: 1}`,
			`w.yaml:6:8: "in" is a word of the expression language; call the step something else`},
		{"title too long", `- {id: a, title: "` + strings.Repeat("é", 201) + `", set: 1}`,
			`w.yaml:6:19: a title has at most 200 characters; this one has 201`},

		{"no kind", `- {id: a, title: x}`,
			`w.yaml:6:3: the step does nothing: it needs one of call, action, approve, ask, set, sleep, parallel`},
		{"two kinds", `- {id: a, set: 1, sleep: 1h}`,
			`w.yaml:6:26: a step does one thing; this one has set and sleep`},
		{"a later kind", `- {id: a, for_each: "${input.x}"}`,
			`w.yaml:6:21: for_each steps are not available in this version`},
		{"no map of branches", `- {id: a, parallel: [{id: b, set: 1}]}`,
			`w.yaml:6:21: parallel is a map of branches, each a list of steps: {left: [...], right: [...]}`},
		{"one branch", `- {id: a, parallel: {left: [{id: b, set: 1}]}}`,
			`w.yaml:6:21: a parallel step has from 2 to 20 branches; this one has 1`},
		{"an empty branch", `- {id: a, parallel: {left: [], right: [{id: b, set: 1}]}}`,
			`w.yaml:6:28: the branch left has no steps`},
		{"a branch name", `- {id: a, parallel: {if: [{id: c, set: 1}], right: [{id: b, set: 1}]}}`,
			`w.yaml:6:26: "if" is not a branch name: a lower-case letter, then up to 30 of a-z, 0-9 and _, and no word of the expression language`},
		{"an id of two branches", `- {id: a, parallel: {left: [{id: c, set: 1}], right: [{id: c, set: 1}]}}`,
			`w.yaml:6:60: two steps are called c: the other is at w.yaml:6:34`},
		{"goto out of a branch", "- {id: z, set: 1}\n- {id: a, parallel: {left: [{id: c, set: 1, then: {goto: z, max_passes: 2}}], right: [{id: b, set: 1}]}}",
			`w.yaml:7:58: z is in another list of steps: a goto stays inside its own branch`},
		{"goto into a branch", "- {id: a, parallel: {left: [{id: c, set: 1}], right: [{id: b, set: 1}]}}\n- {id: z, set: 1, then: {goto: c, max_passes: 2}}",
			`w.yaml:7:32: c is in another list of steps: a goto stays inside its own branch`},
		{"the other branch", `- {id: a, parallel: {left: [{id: c, set: 1}], right: [{id: b, set: "${steps.c.output}"}]}}`,
			`w.yaml:6:77: step c is in another branch of a: name steps.a.output after the branches have joined`},
		{"a step of a branch after it", "- {id: a, parallel: {left: [{id: c, set: 1}], right: [{id: b, set: 1}]}}\n- {id: z, set: \"${steps.c.output}\"}",
			`w.yaml:7:25: step c is in a branch of a: after it, name steps.a.output.BRANCH, the output of the last step of a branch`},
		{"the step around", `- {id: a, parallel: {left: [{id: c, set: "${steps.a.output}"}], right: [{id: b, set: 1}]}}`,
			`w.yaml:6:51: step a lies around this step: its output is not there before its branches have joined`},
		{"a guard of another branch", `- {id: a, parallel: {left: [{id: ok, approve: {document: 1, guards: [b]}}], right: [{id: b, action: kb.publish}]}}`,
			`w.yaml:6:70: b is in another branch, which does not wait for this approval: put the approval before the branches, or b into this one`},
		{"a guard of what follows the branches", "- {id: a, parallel: {left: [{id: ok, approve: {document: 1, guards: [b]}}], right: [{id: c, set: 1}]}}\n- {id: b, action: kb.publish}",
			`w.yaml:6:70: b lies behind the branch that this approval is in: an approval guards what follows it in its own list of steps`},
		{"a goto past a guard of a branch", "- {id: s, set: 1, then: {goto: a}}\n- {id: ok, approve: {document: 1, guards: [b]}}\n- {id: a, parallel: {left: [{id: b, action: kb.publish}], right: [{id: c, set: 1}]}}",
			`w.yaml:6:25: this goes past the approval ok to b, which it guards`},
		{"an age across branches", "- {id: r, call: docs.collect, fresh_for: 1h}\n- {id: a, parallel: {left: [{id: b, action: kb.publish, with: {x: \"${steps.r.output}\"}}], right: [{id: c, set: 1}]}}",
			`w.yaml:7:29: step b is built on r, which has fresh_for and is not in the same list of steps: read it again there, or leave fresh_for out of r`},
		{"an age behind branches", "- {id: a, parallel: {left: [{id: r, call: docs.collect, fresh_for: 1h}, {id: m, set: \"${steps.r.output}\"}], right: [{id: c, set: 1}]}}\n- {id: z, action: kb.publish, with: {x: \"${steps.a.output.left}\"}}",
			`w.yaml:7:3: step z is built on r, which has fresh_for and is not in the same list of steps: read it again there, or leave fresh_for out of r`},
		{"too deep", "- {id: a, parallel: {x: [{id: b, parallel: {x: [{id: c, parallel: {x: [{id: d, parallel: {x: [{id: e, set: 1}], y: [{id: f, set: 1}]}}], y: [{id: g, set: 1}]}}], y: [{id: h, set: 1}]}}], y: [{id: i, set: 1}]}}",
			`w.yaml:6:90: parallel steps lie at most 3 deep in each other; this one is 4 deep`},
		{"covers", `- {id: a, approve: {covers: [b]}}`,
			`w.yaml:6:29: covers is not available in this version`},
		{"key of another kind", `- {id: a, set: 1, fresh_for: 1h}`,
			`w.yaml:6:30: fresh_for is for call steps; this is a set step`},
		{"retry of a gate", `- {id: a, approve: {document: 1}, retry: {max_attempts: 2}}`,
			`w.yaml:6:42: retry is for call and action steps; this is an approve step`},

		{"question without a form", `- {id: a, ask: "How much?"}`,
			`w.yaml:6:3: a question needs a form: the JSON Schema that its answer must fit`},
		{"empty question", `- {id: a, ask: "", form: {type: object}}`,
			`w.yaml:6:17: the question is missing: say what is to be answered`},
		{"form that is no object", `- {id: a, ask: Why, form: {type: string}}`,
			`w.yaml:6:27: form: the schema must describe an object; write type: object`},
		{"misspelled key of a form", `- {id: a, ask: Why, form: {type: object, requierd: [x]}}`,
			`w.yaml:6:52: form: unknown keyword "requierd"; did you mean "required"?`},
		{"misspelled part of who", `- {id: a, ask: Why, form: {type: object}, who: {rol: operator}}`,
			`w.yaml:6:49: unknown key "rol"; did you mean "role"?`},
		{"who is nobody", `- {id: a, ask: Why, form: {type: object}, who: {roles: []}}`,
			`w.yaml:6:56: a question that nobody may answer: name at least one role`},
		{"who is both", `- {id: a, ask: Why, form: {type: object}, who: {role: a, roles: [b]}}`,
			`w.yaml:6:48: who is {role: NAME} or {roles: [NAME, NAME]}`},
		{"no name of a role", `- {id: a, ask: Why, form: {type: object}, who: {roles: [ok, "Not ok"]}}`,
			`w.yaml:6:62: "Not ok" is not a role: a lower-case letter, then up to 31 of a-z, 0-9 and -`},
		{"role named twice", `- {id: a, ask: Why, form: {type: object}, who: {roles: [a, a]}}`,
			`w.yaml:6:60: the role a is named twice`},
		{"sensitive part that is not in the form", `- {id: a, ask: Why, form: {type: object, properties: {x: {type: string}}}, sensitive: [/iban]}`,
			`w.yaml:6:88: "/iban" names nothing in the answer`},
		{"on_expire of a question that stays open", `- {id: a, ask: Why, form: {type: object}, on_expire: end}`,
			`w.yaml:6:54: on_expire needs answer_within: without it the question stays open until it is answered`},
		{"no for a question", `- {id: a, ask: Why, form: {type: object}, on_reject: end}`,
			`w.yaml:6:54: on_reject is for action and approve steps; this is an ask step`},
		{"form of another kind", `- {id: a, set: 1, form: {type: object}}`,
			`w.yaml:6:25: form is for ask steps; this is a set step`},
		{"a question that leads past the guard", "- {id: a, ask: Why, form: {type: object}, answer_within: 1h, on_expire: {goto: c}}\n- {id: b, approve: {document: 1, guards: [c]}}\n- {id: c, action: kb.publish}",
			`w.yaml:6:73: this goes past the approval b to c, which it guards`},
		{"question that names what comes later", "- {id: a, ask: \"${steps.b.output}\", form: {type: object}}\n- {id: b, set: 1}",
			`w.yaml:6:25: step b comes later: its output is not there yet`},

		{"unknown step in a goto", "- {id: draft, set: 1}\n- {id: b, action: kb.publish, on_reject: {goto: draf, max_passes: 2}}",
			`w.yaml:7:49: there is no step "draf"; did you mean draft?`},
		{"loop without a bound", "- {id: a, set: 1}\n- {id: b, action: kb.publish, on_reject: {goto: a}}",
			`w.yaml:7:42: a loop needs a bound: going back to a needs max_passes from 1 to 100`},
		{"loop to itself without a bound", `- {id: a, call: docs.collect, on_error: {goto: a}}`, // H18
			`w.yaml:6:41: a loop needs a bound: going back to a needs max_passes from 1 to 100`},
		{"bound of zero", `- {id: a, action: kb.publish, on_reject: {goto: a, max_passes: 0}}`,
			`w.yaml:6:64: max_passes is from 1 to 100, not 0`},
		{"bound too high", `- {id: a, action: kb.publish, on_expire: {ask_again: true, max_passes: 101}}`,
			`w.yaml:6:72: max_passes is from 1 to 100, not 101`},
		{"bound where there is no loop", "- {id: a, call: docs.collect, on_error: {goto: b, max_passes: 2}}\n- {id: b, set: 1}",
			`w.yaml:6:63: going forward to b cannot loop: leave max_passes out`},
		{"unknown rule", `- {id: a, call: docs.collect, on_error: ask_preson}`,
			`w.yaml:6:41: "ask_preson" is not a rule here (did you mean ask_person?): it is fail or end or ask_person or {goto: STEP, max_passes: N}`},
		{"rule of another place", `- {id: a, action: kb.publish, on_reject: ask_person}`,
			`w.yaml:6:42: "ask_person" is not a rule here: it is end or {goto: STEP, max_passes: N}`},
		{"approval by silence", `- {id: a, action: kb.publish, on_expire: approve}`,
			`w.yaml:6:42: "approve" is not a rule here: it is end or {ask_again: true, max_passes: N} or {goto: STEP, max_passes: N}`},
		{"ask again and go", `- {id: a, action: kb.publish, on_expire: {ask_again: true, goto: a, max_passes: 2}}`,
			`w.yaml:6:54: a rule either asks again or goes somewhere else, not both`},

		{"unreachable after a goto", "- {id: a, set: 1, then: {goto: c}}\n- {id: b, set: 1}\n- {id: c, set: 1}",
			`w.yaml:7:3: step b can never run: step a before it always goes to c`},
		{"unreachable after an end", "- {id: a, set: 1, then: end}\n- {id: b, set: 1}\n- {id: c, set: 1}",
			"w.yaml:7:3: step b can never run: step a before it always ends the run\nw.yaml:8:3: step c can never run: step b before it cannot either"},

		{"unknown step in an expression", "- {id: draft, set: 1}\n- {id: b, set: \"x ${steps.darft.output}\"}",
			`w.yaml:7:27: there is no step "darft"; did you mean draft?`},
		{"a step that comes later", "- {id: a, call: docs.collect, with: {x: \"${steps.b.output}\"}}\n- {id: b, set: 1}",
			`w.yaml:6:50: step b comes later: its output is not there yet`},
		{"its own output", `- {id: a, set: "${steps.a.output}"}`,
			`w.yaml:6:25: step a names its own output, which is not there yet`},
		{"not a part of a step", "- {id: a, set: 1}\n- {id: b, set: \"${steps.a.outptu}\"}",
			`w.yaml:7:27: a step has output and status, not "outptu"; did you mean output?`},
		{"not a part of the run", `- {id: a, set: "${run.initator}"}`,
			`w.yaml:6:23: there is no run.initator; did you mean initiator?`},
		{"a secret", `- {id: a, call: docs.collect, with: {token: "${secret.TOKEN}"}}`,
			`w.yaml:6:48: a workflow cannot name a secret: only a tool can, in its own definition, so that the value never enters a run`},
		{"when in braces", `- {id: a, when: "${input.x}", set: 1}`,
			"w.yaml:6:18: `when` is an expression as it stands: write it without ${ }"},

		{"approval after what it guards", "- {id: a, action: kb.publish}\n- {id: b, approve: {document: 1, guards: [a]}}", // H18
			`w.yaml:7:43: a runs before this approval, which is to guard it: move the approval up`},
		{"guard of nothing", "- {id: b, approve: {document: 1, guards: [publsh]}}\n- {id: publish, action: kb.publish}",
			`w.yaml:6:43: there is no step "publsh"; did you mean publish?`},
		{"guard of a read", "- {id: b, approve: {document: 1, guards: [c]}}\n- {id: c, call: docs.collect}\n- {id: d, action: kb.publish}",
			`w.yaml:6:43: c is a call step; an approval guards actions`},
		{"a way past the guard", "- {id: a, call: docs.collect, on_error: {goto: c}}\n- {id: b, approve: {document: 1, guards: [c]}}\n- {id: c, action: kb.publish}",
			`w.yaml:6:41: this goes past the approval b to c, which it guards`},
		{"a no that goes on to the guarded action", "- {id: b, approve: {document: 1, guards: [c]}, on_reject: {goto: c}}\n- {id: c, action: kb.publish}",
			`w.yaml:6:59: this goes past the approval b to c, which it guards`},
		{"a guard that may be skipped", "- {id: b, when: input.x, approve: {document: 1, guards: [c]}}\n- {id: c, action: kb.publish}",
			"w.yaml:6:17: the approval may be skipped, but c, which it guards, runs anyway: give c the same `when`"},

		{"attempts", `- {id: a, call: docs.collect, retry: {max_attempts: 0}}`,
			`w.yaml:6:53: max_attempts is from 1 (try once) to 100, not 0`},
		{"delay shorter than base", `- {id: a, call: docs.collect, retry: {base: 10s, max_delay: 1s}}`,
			`w.yaml:6:61: max_delay 1s is shorter than base 10s`},
		{"timeout too long", `- {id: a, call: docs.collect, timeout: 53w}`,
			`w.yaml:6:40: timeout is from 1ms to 366d, not 8904h0m0s`},
		{"timeout of nothing", `- {id: a, call: docs.collect, timeout: 0s}`,
			`w.yaml:6:40: timeout is from 1ms to 366d, not 0s`},
		{"sleep for too long", `- {id: a, sleep: 367d}`,
			`w.yaml:6:18: a sleep is from 0s to 366d`},

		{"migration from the future", "- {id: a, set: 1}\n---\nmigrate: [{from: 1}]",
			`w.yaml:7:18: from is an older version, from 1 to 0, not 1`},
		{"all faults at once", "- {id: a, call: nope}\n- {id: B, set: \"${steps.z.output}\"}\n- {id: c, sleep: 400d}",
			`w.yaml:6:17: there is no tool "nope"; there is docs.collect, kb.publish, ops.restart, planner.draft, shop.order, shop.refund
w.yaml:7:8: "B" is not a step id: a lower-case letter, then up to 62 of a-z, 0-9 and _
w.yaml:7:25: there is no step "z"; there is a, c
w.yaml:8:18: a sleep is from 0s to 366d`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w, err := workflow.Compile("w.yaml", []byte(document(c.steps)), catalog())
			if err == nil {
				t.Fatalf("compiles:\n%s", w.Compiled)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("of\n%s\nerrors (-want +got):\n%s", document(c.steps), diff)
			}
		})
	}
}

// TestCompile_SaysWhatIsWrongAtTheTop is the same for whole documents.
func TestCompile_SaysWhatIsWrongAtTheTop(t *testing.T) {
	top := func(line string) string {
		return "format: 1\nworkflow: w\nversion: 1\nsteps: [{id: a, set: 1}]\n" + line
	}
	cases := []struct{ name, src, want string }{
		{"format", strings.Replace(top(""), "format: 1", "format: 2", 1), `w.yaml:1:9: format 2 is not known to this version; it reads format 1`},
		{"version", strings.Replace(top(""), "version: 1", "version: 0", 1), `w.yaml:3:10: a version is a whole number from 1 to 1000000000, not 0`},
		{"name", strings.Replace(top(""), "workflow: w", "workflow: Weekly Report", 1),
			`w.yaml:2:11: "Weekly Report" is not a workflow name: a lower-case letter, then up to 62 of a-z, 0-9, _ and -`},
		{"no steps", strings.Replace(top(""), "[{id: a, set: 1}]", "[]", 1), `w.yaml:4:8: a workflow has at least one step`},
		{"two migrations", strings.Replace(top("migrate: [{from: 1}, {from: 1}]"), "version: 1", "version: 2", 1), `w.yaml:5:29: version 1 has two migrations`},
		{"renamed to nothing", strings.Replace(top("migrate: [{from: 1, rename_steps: {b: c}}]"), "version: 1", "version: 2", 1),
			`w.yaml:5:39: there is no step "c"; there is a`},
		{"later in the output", top(`output: "${steps.b.output}"`), `w.yaml:5:18: there is no step "b"; there is a`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := workflow.Compile("w.yaml", []byte(c.src), catalog())
			if err == nil {
				t.Fatal("compiles")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("of\n%s\nerrors (-want +got):\n%s", c.src, diff)
			}
		})
	}
}

// TestCompile_RefusesWhatTheLanguagesBelowRefuse holds that their messages
// come through with a place; the words are theirs.
func TestCompile_RefusesWhatTheLanguagesBelowRefuse(t *testing.T) {
	cases := []struct{ name, src, want string }{
		{"misspelled top key", "format: 1\nworkflow: w\nversion: 1\nStpes: []\nsteps: [{id: a, set: 1}]", "w.yaml:4:1"}, // H02
		{"misspelled step key", document(`- {id: a, call: docs.collect, time_out: 1s}`), "timeout"},
		{"two steps keys", "format: 1\nworkflow: w\nversion: 1\nsteps: [{id: a, set: 1}]\nsteps: []", "w.yaml:5:1"},   // H01
		{"two timeouts", document("- id: a\n  call: docs.collect\n  timeout: 1s\n  timeout: 2s"), "w.yaml:9:3"},       // H01
		{"bare number as a duration", document(`- {id: a, call: docs.collect, timeout: 60}`), "w.yaml:6:40"},          // H16
		{"quoted number as a duration", document(`- {id: a, call: docs.collect, timeout: "60"}`), "w.yaml:6:40"},      // H16
		{"version with a fraction", "format: 1\nworkflow: w\nversion: 1.10\nsteps: [{id: a, set: 1}]", "w.yaml:3:10"}, // H03
		{"second document", document(`- {id: a, set: 1}`) + "\n---\na: 1\n", "w.yaml:"},
		{"merge key", document("- {id: a, set: 1}\n- {<<: {}, id: b, set: 1}"), "w.yaml:7:"}, // H07
		{"expression that does not compile", document(`- {id: a, set: "${1 +}"}`), "w.yaml:6:"},
		{"input that is not there", strings.Replace(document(`- {id: a, set: "say ${input.txt}"}`), "{type: object}", "{type: object, additionalProperties: false, properties: {text: {type: string}}}", 1), `w.yaml:6:29: the input has no "txt"; did you mean text?`},
		{"name that is not there", document(`- {id: a, set: "${inptu.x}"}`), "w.yaml:6:"},
		{"remote reference", strings.Replace(document(`- {id: a, set: 1}`), "{type: object}", `{type: object, $ref: "http://127.0.0.1:1/x"}`, 1), "w.yaml:4:"},                       // H11
		{"look-ahead", strings.Replace(document(`- {id: a, set: 1}`), "{type: object}", `{type: object, properties: {p: {type: string, pattern: '^(?=.*\d).+$'}}}`, 1), "w.yaml:4:"}, // H15
		{"input that is no object", strings.Replace(document(`- {id: a, set: 1}`), "{type: object}", `{type: string}`, 1), "w.yaml:4:"},
		{"file too large", "# " + strings.Repeat("x", 1<<20) + "\n" + document(`- {id: a, set: 1}`), "a workflow has at most 1048576"},
		{"empty file", "", "w.yaml"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := workflow.Compile("w.yaml", []byte(c.src), catalog())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error:\n%v\nwant one with %q", err, c.want)
			} else if strings.Count(err.Error(), "\n") > 1 {
				t.Errorf("one slip gives many messages:\n%v", err)
			}
		})
	}
}

func TestCompile_StepsAreLimited(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "- {id: s%d, set: 1}\n", i)
	}
	if _, err := workflow.Compile("w.yaml", []byte(document(b.String())), catalog()); err != nil {
		t.Errorf("1000 steps: %v", err)
	}
	b.WriteString("- {id: more, set: 1}\n")
	_, err := workflow.Compile("w.yaml", []byte(document(b.String())), catalog())
	if err == nil || !strings.Contains(err.Error(), "at most 1000 steps; this one has 1001") {
		t.Errorf("1001 steps: %v", err)
	}
}
