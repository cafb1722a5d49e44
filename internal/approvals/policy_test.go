package approvals_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"countersign/internal/approvals"

	"github.com/google/go-cmp/cmp"
)

func compile(t *testing.T, src string) *approvals.Policy {
	t.Helper()
	p, err := approvals.CompilePolicy("p.yaml", []byte(src))
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return p
}

const sample = `format: 1
policy: default
version: 3
on_error: {groups: [{role: admin, need: 1}]}
rules:
  - name: never-at-night
    when: "tool == 'shop.refund' && (hour < 6 || weekday == 'sunday')"
    deny: true
  - name: small-refunds
    when: "tool == 'shop.refund' && params.amount <= 2000"
    allow: true
  - name: own-team
    when: "tool == 'kb.publish' && 'builder' in initiator_roles"
    approve:
      groups: [{role: approver, need: 1}, {name: owners, people: [usr_01m8rda4m0vwd9nkz2sfvgkgj7], need: 1}]
      initiator_may_decide: true
      reauthenticate: true
  - name: big
    when: "risk in ['high', 'critical']"
    approve: {groups: [{role: finance, need: 2}], decide_within: 1d, execute_within: 1h, editor_may_approve: false}
`

func facts(tool, risk string, amount any) approvals.Facts {
	return approvals.Facts{Tool: tool, ToolVersion: 1, Risk: risk, Params: map[string]any{"amount": amount}, Initiator: "usr_ivo", Now: start}
}

func TestJudge_TheFirstRuleThatMatchesWins(t *testing.T) {
	p := compile(t, sample)
	night := facts("shop.refund", "high", 5.0)
	night.Now = time.Date(2026, 12, 1, 5, 59, 0, 0, time.UTC)
	sunday := facts("shop.refund", "high", 5.0)
	sunday.Now = time.Date(2026, 12, 6, 12, 0, 0, 0, time.FixedZone("", 3600))
	builder := facts("kb.publish", "low", nil)
	builder.InitiatorRoles = []string{"builder"}
	cases := []struct {
		name   string
		f      approvals.Facts
		effect approvals.Effect
		rule   string
		needs  int
	}{
		{"small", facts("shop.refund", "high", 2000.0), approvals.Allow, "small-refunds", 0},
		{"one more", facts("shop.refund", "high", 2001.0), approvals.Approve, "big", 2},
		{"at night", night, approvals.Deny, "never-at-night", 0},
		{"on Sunday", sunday, approvals.Deny, "never-at-night", 0},
		{"a role", builder, approvals.Approve, "own-team", 2},
		{"no rule", facts("kb.publish", "low", nil), approvals.Approve, approvals.RuleNone, 1},
		{"no amount", facts("shop.refund", "low", "much"), approvals.Approve, approvals.RuleError, 1},
	}
	for _, c := range cases {
		v := p.Judge(t.Context(), c.f)
		needs := 0
		for _, g := range v.Groups {
			needs += g.Need
		}
		if v.Effect != c.effect || v.Rule != c.rule || needs != c.needs || v.Policy != "default" || v.PolicyVersion != 3 || v.PolicyDigest != p.Digest || len(v.Trace) != 4 {
			t.Errorf("%s: %s by %s, %d people, %d traced; want %s by %s, %d, 4", c.name, v.Effect, v.Rule, needs, len(v.Trace), c.effect, c.rule, c.needs)
		}
	}
}

func TestJudge_KeepsAllThatARuleSays(t *testing.T) {
	p := compile(t, sample)
	v := p.Judge(t.Context(), facts("ops.restart", "critical", nil))
	no := false
	want := approvals.Verdict{Effect: approvals.Approve, Policy: "default", PolicyVersion: 3, PolicyDigest: p.Digest, Rule: "big",
		Groups: []approvals.Group{{Name: "finance", Role: "finance", Need: 2}}, DecideWithin: 24 * time.Hour, ExecuteWithin: time.Hour, EditorMayApprove: &no,
		Trace: []approvals.RuleTrace{
			{Rule: "never-at-night", Why: "does not hold: tool == 'shop.refund' && (hour < 6 || weekday == 'sunday')"},
			{Rule: "small-refunds", Why: "does not hold: tool == 'shop.refund' && params.amount <= 2000"},
			{Rule: "own-team", Why: "does not hold: tool == 'kb.publish' && 'builder' in initiator_roles"},
			{Rule: "big", Matched: true, Why: "risk in ['high', 'critical']"}}}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An error is never an approval: of a deny rule it denies, of any other it
// asks on_error, whatever comes after.
func TestJudge_AnErrorDeniesOrAsks(t *testing.T) {
	bad := `format: 1
policy: default
version: 1
on_error: {groups: [{role: admin, need: 2}], decide_within: 2h}
rules:
  - {name: broken, when: "params.amount > 10", EFFECT}
  - {name: rest, when: "true", allow: true}
`
	for effect, want := range map[string]struct {
		effect approvals.Effect
		rule   string
	}{
		"deny: true":  {approvals.Deny, "broken"},
		"allow: true": {approvals.Approve, approvals.RuleError},
		"approve: {groups: [{role: approver, need: 1}]}": {approvals.Approve, approvals.RuleError},
	} {
		v := compile(t, strings.Replace(bad, "EFFECT", effect, 1)).Judge(t.Context(), approvals.Facts{Params: map[string]any{}, Now: start})
		if v.Effect != want.effect || v.Rule != want.rule || v.Trace[0].Matched || !strings.HasPrefix(v.Trace[0].Why, "could not be evaluated") || v.Why == "" {
			t.Errorf("%s: %+v, want %v", effect, v, want)
		}
		if v.Effect == approvals.Approve && (v.Groups[0].Role != "admin" || v.Groups[0].Need != 2 || v.DecideWithin != 2*time.Hour) {
			t.Errorf("%s: asks %v within %s, want on_error's 2 of admin within 2h", effect, v.Groups, v.DecideWithin)
		}
	}
}

func TestJudge_WithoutAPolicyAnApproverIsAsked(t *testing.T) {
	var none *approvals.Policy
	v := none.Judge(context.Background(), approvals.Facts{Now: start})
	if v.Effect != approvals.Approve || v.Rule != approvals.RuleNone || len(v.Groups) != 1 || v.Groups[0].Role != approvals.RoleApprover || v.Groups[0].Need != 1 {
		t.Errorf("%+v, want one of approver", v)
	}
}

// A24, A25: what is missing, empty, misspelled or zero is refused at load
// with its place, and never read as no gate.
func TestCompilePolicy_RefusesWhatWouldBeNoGate(t *testing.T) {
	head := "format: 1\npolicy: p\nversion: 1\nrules:\n"
	rule := func(s string) string { return head + "  - {name: r, when: \"true\", " + s + "}\n" }
	for name, c := range map[string]struct{ src, want string }{
		"empty file":           {"", ""},
		"no rules key":         {"format: 1\npolicy: p\nversion: 1\n", `the key "rules" is missing`},
		"rules null":           {"format: 1\npolicy: p\nversion: 1\nrules:\n", "expected a list"},
		"misspelled rules":     {"format: 1\npolicy: p\nversion: 1\nrulez: []\n", `did you mean "rules"?`},
		"misspelled on_error":  {"format: 1\npolicy: p\nversion: 1\non_eror: {}\nrules: []\n", `did you mean "on_error"?`},
		"on_error null":        {"format: 1\npolicy: p\nversion: 1\non_error:\nrules: []\n", "expected a mapping"},
		"on_error empty":       {"format: 1\npolicy: p\nversion: 1\non_error: {}\nrules: []\n", `the key "groups" is missing`},
		"no effect":            {head + "  - {name: r, when: \"true\"}\n", "the rule says nothing"},
		"two effects":          {rule("allow: true, deny: true"), "the rule says allow and deny; keep one"},
		"allow false":          {rule("allow: false"), "allow: false says nothing"},
		"deny yes":             {rule("deny: yes"), "write true"},
		"allow null":           {rule("allow: null"), "expected true or false"},
		"approve null":         {rule("approve: null"), "expected a mapping"},
		"approve true":         {rule("approve: true"), "expected a mapping"},
		"approve empty":        {rule("approve: {}"), `the key "groups" is missing`},
		"groups empty":         {rule("approve: {groups: []}"), "the list of groups is empty"},
		"groups null":          {rule("approve: {groups: null}"), "expected a list"},
		"group empty":          {rule("approve: {groups: [{}]}"), `the key "need" is missing`},
		"no need":              {rule("approve: {groups: [{role: a}]}"), `the key "need" is missing`},
		"need 0":               {rule("approve: {groups: [{role: a, need: 0}]}"), "nothing is approved by nobody"},
		"need negative":        {rule("approve: {groups: [{role: a, need: -1}]}"), "nothing is approved by nobody"},
		"need text":            {rule("approve: {groups: [{role: a, need: \"1\"}]}"), "expected a whole number"},
		"need too many":        {rule("approve: {groups: [{role: a, need: 21}]}"), "between 1 and 20"},
		"no role":              {rule("approve: {groups: [{need: 1}]}"), "either a role or a list of people"},
		"role and people":      {rule("approve: {groups: [{role: a, people: [], need: 1}]}"), "either a role or a list of people"},
		"role empty":           {rule("approve: {groups: [{role: \"\", need: 1}]}"), "the role is empty"},
		"people empty":         {rule("approve: {groups: [{people: [], need: 1}]}"), "the list of people is empty"},
		"people by name":       {rule("approve: {groups: [{people: [ana], need: 1}]}"), "not the id of a person"},
		"more than people":     {rule("approve: {groups: [{people: [usr_01m8rda4m0vwd9nkz2sfvgkgj7], need: 2}]}"), "needs 2 people but names 1"},
		"group twice":          {rule("approve: {groups: [{role: a, need: 1}, {role: a, need: 1}]}"), "is there twice"},
		"misspelled groups":    {rule("approve: {group: [{role: a, need: 1}]}"), `did you mean "groups"?`},
		"a list of decisions":  {rule("approve: {groups: [{role: a, need: 1}], allowed_decisions: []}"), `unknown key "allowed_decisions"`},
		"misspelled approve":   {rule("aprove: {groups: [{role: a, need: 1}]}"), `did you mean "approve"?`},
		"bare number duration": {rule("approve: {groups: [{role: a, need: 1}], decide_within: 60}"), "has no unit"},
		"no time":              {rule("approve: {groups: [{role: a, need: 1}], decide_within: 0s}"), "leaves no time"},
		"too long":             {rule("approve: {groups: [{role: a, need: 1}], execute_within: 31d}"), "at most 30d"},
		"no when":              {head + "  - {name: r, allow: true}\n", `the key "when" is missing`},
		"empty when":           {head + "  - {name: r, when: \"\", allow: true}\n", "the condition is empty"},
		"wrapped when":         {head + "  - {name: r, when: \"${true}\", allow: true}\n", "without ${ }"},
		"unknown name":         {head + "  - {name: r, when: \"tol == 'x'\", allow: true}\n", `did you mean "tool"?`},
		"no CEL":               {head + "  - {name: r, when: \"tool ==\", allow: true}\n", ""},
		"no name":              {head + "  - {when: \"true\", allow: true}\n", `the key "name" is missing`},
		"reserved name":        {head + "  - {name: no-match, when: \"true\", allow: true}\n", "stands for something else"},
		"name twice":           {head + "  - {name: r, when: \"true\", allow: true}\n  - {name: r, when: \"true\", deny: true}\n", "is already at p.yaml:5:5"},
		"odd name":             {head + "  - {name: \"R 1\", when: \"true\", allow: true}\n", "must begin with a letter"},
		"format 2":             {"format: 2\npolicy: p\nversion: 1\nrules: []\n", "format 2 is not known"},
		"version 0":            {"format: 1\npolicy: p\nversion: 0\nrules: []\n", "versions count from 1"},
		"a key twice":          {"format: 1\npolicy: p\npolicy: q\nversion: 1\nrules: []\n", "policy"},
		"a rule that is text":  {head + "  - allow\n", "expected a mapping"},
	} {
		p, err := approvals.CompilePolicy("p.yaml", []byte(c.src))
		if err == nil || p != nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "p.yaml") {
			t.Errorf("%s: %v, want a fault at its place that says %q", name, err, c.want)
		}
	}
}

func TestCompilePolicy_ReportsEveryFaultAtItsPlace(t *testing.T) {
	_, err := approvals.CompilePolicy("p.yaml", []byte("format: 1\npolicy: p\nversion: 1\nrules:\n  - name: a\n    when: \"tool == 'x' && amont > 3\"\n    allow: true\n  - name: b\n    when: \"true\"\n    approve: {groups: [{role: r, need: 0}]}\n"))
	if err == nil {
		t.Fatal("compiled")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "p.yaml:6:27: ") || !strings.HasPrefix(lines[1], "p.yaml:10:40: ") {
		t.Errorf("faults:\n%s\nwant 6:27 and 10:40", err)
	}
}

func TestCompilePolicy_LimitsTheNumberOfRules(t *testing.T) {
	src := "format: 1\npolicy: p\nversion: 1\nrules:\n" + strings.Repeat("  - {name: r, when: \"true\", deny: true}\n", 201)
	if _, err := approvals.CompilePolicy("p.yaml", []byte(src)); err == nil || !strings.Contains(err.Error(), "at most 200") {
		t.Errorf("%v, want the limit named", err)
	}
}

func TestLoadPolicy_GivesTheSamePolicyBack(t *testing.T) {
	for _, src := range []string{sample, "format: 1\npolicy: p\nversion: 1\nrules: []\n"} {
		p := compile(t, src)
		again, err := approvals.LoadPolicy(p.Compiled)
		if err != nil || again.Digest != p.Digest || again.Name != p.Name || again.Version != p.Version {
			t.Fatalf("loaded %+v, %v; want digest %s", again, err, p.Digest)
		}
		for _, f := range []approvals.Facts{facts("shop.refund", "high", 1.0), facts("x", "critical", nil), facts("shop.refund", "low", "x")} {
			if diff := cmp.Diff(p.Judge(t.Context(), f), again.Judge(t.Context(), f)); diff != "" {
				t.Errorf("the loaded policy judges otherwise:\n%s", diff)
			}
		}
	}
}

// A stored form that was changed to ask nobody does not load.
func TestLoadPolicy_RefusesAFormThatAsksNobody(t *testing.T) {
	good := string(compile(t, sample).Compiled)
	for name, pair := range map[string][2]string{
		"need 0": {`"need":2`, `"need":0`}, "effect": {`"effect":"deny"`, `"effect":"skip"`}, "no effect": {`"effect":"deny",`, ``},
		"approve without asking": {`"effect":"allow"`, `"effect":"approve"`}, "unknown field": {`"format":1`, `"format":1,"off":true`},
		"type": {`countersign.policy/1`, `countersign.policy/9`}, "role gone": {`"role":"finance"`, `"role":""`}, "condition": {`weekday == 'sunday'`, `weekdey == 'sunday'`},
	} {
		src := strings.Replace(good, pair[0], pair[1], 1)
		if src == good {
			t.Fatalf("%s: nothing replaced in %s", name, good)
		}
		if _, err := approvals.LoadPolicy([]byte(src)); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}

func TestCompilePolicy_DigestIsOfTheMeaningNotTheSpelling(t *testing.T) {
	a := compile(t, "format: 1\npolicy: p\nversion: 1\nrules: [{name: r, when: \"true\", approve: {groups: [{role: a, need: 1}], decide_within: 72h}}]\n")
	b := compile(t, "# words\nversion: 1\npolicy: p\nformat: 1\nrules:\n  - name: r\n    when: 'true'\n    approve:\n      groups:\n        - {need: 1, role: a}\n      decide_within: 3d\n")
	c := compile(t, "format: 1\npolicy: p\nversion: 1\nrules: [{name: r, when: \"true\", approve: {groups: [{role: a, need: 2}]}}]\n")
	if a.Digest != b.Digest || a.Digest == c.Digest {
		t.Errorf("digests %s %s %s: want the first two equal, the third not", a.Digest, b.Digest, c.Digest)
	}
}

func TestCompilePolicy_TheExampleIsSound(t *testing.T) {
	src, err := os.ReadFile("../../examples/policies/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := compile(t, string(src))
	for amount, want := range map[float64]string{2000: "small-refunds", 2001: "refunds", 50001: "large-refunds"} {
		if v := p.Judge(t.Context(), facts("shop.refund", "high", amount)); v.Rule != want {
			t.Errorf("a refund of %v is ruled on by %s, want %s", amount, v.Rule, want)
		}
	}
}

func FuzzCompilePolicy(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("format: 1\npolicy: p\nversion: 1\nrules: []\n"))
	f.Add([]byte("rules: &a [*a]"))
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := approvals.CompilePolicy("p.yaml", src)
		if err != nil {
			return
		}
		again, err := approvals.LoadPolicy(p.Compiled)
		if err != nil || again.Digest != p.Digest {
			t.Fatalf("load again: %v", err)
		}
		if v := p.Judge(t.Context(), facts("shop.refund", "high", 1.0)); v.Effect == approvals.Approve && len(v.Groups) == 0 {
			t.Fatalf("the verdict asks nobody: %+v", v)
		}
	})
}
