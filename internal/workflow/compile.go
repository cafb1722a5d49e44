package workflow

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/expr"
	"countersign/internal/problem"
	"countersign/internal/schema"
	"countersign/internal/strictyaml"
)

// naming is what expressions in a workflow may name.
var naming = expr.Vars("input", "steps", "run")

// runFields are the members of `run`.
var runFields = []string{"feedback", "id", "initiator", "key", "on_behalf_of", "started_at", "thread"}

// stepFields are the members of `steps.X`.
var stepFields = []string{"output", "status"}

// compiled is what every kind of compiled expression can tell.
type compiled interface {
	Steps() []string
	Members(root string) []string
}

// compile makes the step of a sound form: its settings and its expressions.
func (c *checker) compile(i int, f *formStep, at string) *Step {
	st := &Step{ID: f.ID, Path: c.path(i), Index: c.nodes[i].pos, Kind: f.Kind, Title: f.Title, Tool: f.Tool,
		Timeout: micros(f.Timeout), FreshFor: micros(f.FreshFor), Retries: f.Retry.rule(),
		then: f.Then, onError: f.OnError}
	if f.OnReject != nil {
		st.onReject = *f.OnReject
	}
	if f.OnExpire != nil {
		st.onExpire = *f.OnExpire
	}
	if f.When != "" {
		st.when = c.condition(i, at+"/when", f.When)
	}
	switch f.Kind {
	case Call, Action:
		st.with = c.value(i, at+"/with", f.With)
	case Gate:
		st.document = c.value(i, at+"/document", f.Document)
	case Ask:
		st.Form = c.formOf(f, at)
		st.Roles, st.Sensitive, st.AnswerWithin = f.Who, f.Sensitive, micros(f.AnswerWithin)
		st.question = c.text(i, at+"/question", f.Question)
	case Set:
		st.set = c.value(i, at+"/set", f.Set)
	case Sleep:
		st.sleep = c.duration(i, at+"/sleep", f.Sleep)
	}
	st.key, st.reason, st.heading = c.text(i, at+"/key", f.Key), c.text(i, at+"/reason", f.Reason), c.text(i, at+"/heading", f.Heading)
	for _, id := range f.Guards {
		st.guards = append(st.guards, c.paths([]string{id})...)
	}
	st.refs = c.paths(st.names())
	return st
}

// names lists the ids of the steps that the step's expressions name.
func (st *Step) names() (refs []string) {
	for _, v := range []*expr.Value{st.with, st.document, st.set} {
		if v != nil {
			refs = append(refs, v.Steps()...)
		}
	}
	for _, t := range []*expr.Text{st.key, st.reason, st.heading, st.sleep, st.question} {
		if t != nil {
			refs = append(refs, t.Steps()...)
		}
	}
	if st.when != nil {
		refs = append(refs, st.when.Steps()...)
	}
	return refs
}

func (c *checker) condition(i int, pointer, src string) *expr.Condition {
	if strings.HasPrefix(src, "${") {
		c.fault(pointer, "`when` is an expression as it stands: write it without ${ }")
		return nil
	}
	cond, err := expr.CompileCondition(src, naming)
	if err != nil {
		c.uncompiled(pointer, src, err)
		return nil
	}
	c.named(i, pointer, src, cond)
	c.members(i, pointer, src, true)
	return cond
}

func (c *checker) value(i int, pointer string, v any) *expr.Value {
	value, err := expr.CompileValue(v, naming)
	if err != nil {
		c.uncompiled(pointer, v, err)
		return nil
	}
	c.named(i, pointer, v, value)
	c.members(i, pointer, v, false)
	return value
}

// text compiles joined text; an empty text is none.
func (c *checker) text(i int, pointer, src string) *expr.Text {
	if src == "" {
		return nil
	}
	text, err := expr.CompileText(src, naming)
	if err != nil {
		c.uncompiled(pointer, src, err)
		return nil
	}
	c.named(i, pointer, src, text)
	c.members(i, pointer, src, false)
	return text
}

// duration compiles a sleep and, where it is fixed, checks it.
func (c *checker) duration(i int, pointer, src string) *expr.Text {
	if src == "" {
		if c.loaded() {
			c.fault(pointer, "the duration is missing: for example 90m, 2h or 3d")
		}
		return nil
	}
	if !strings.Contains(src, "${") {
		if _, err := sleepFor(src); err != nil {
			c.fault(pointer, "%v", err)
			return nil
		}
	}
	return c.text(i, pointer, src)
}

// uncompiled reports the faults of an expression at their places. A secret is
// an unknown name like any other, but what to do about it is worth saying.
func (c *checker) uncompiled(pointer string, src any, err error) {
	faults, ok := errors.AsType[expr.Errors](err)
	if !ok {
		c.fault(pointer, "%s", problem.From(err).Message)
		return
	}
	for _, f := range faults {
		message := f.Message
		if text, ok := canon.Get(src, f.Pointer); ok && secretPattern.MatchString(fmt.Sprint(text)) {
			message = "a workflow cannot name a secret: only a tool can, in its own definition, so that the value never enters a run"
		}
		c.problems.Add(c.marks.inside(pointer, f.Pointer, f.Offset), "%s", message)
	}
}

var secretPattern = regexp.MustCompile(`\bsecrets?\s*[.\[]`)

// named checks that what the expression names exists and comes before step i.
func (c *checker) named(i int, pointer string, src any, e compiled) {
	for _, id := range e.Steps() {
		at := c.mention(pointer, src, id)
		n, ok := c.index[id]
		if !ok {
			c.problems.Add(at, "there is no step %q%s", id, near(id, c.ids))
		} else if why := c.unnameable(i, n); why != "" {
			c.problems.Add(at, "%s", why)
		}
	}
	for _, name := range e.Members("run") {
		if !slices.Contains(runFields, name) {
			c.problems.Add(c.mention(pointer, src, name), "there is no run.%s%s", name, near(name, runFields))
		}
	}
	c.inputs(pointer, src, e)
}

// inputs checks that what is named of the input can be there. A stored form
// was checked when it was stored.
func (c *checker) inputs(pointer string, src any, e compiled) {
	known, only := schema.OnlyNames(c.form.Input)
	if !only || c.loaded() {
		return
	}
	for _, name := range e.Members("input") {
		if !slices.Contains(known, name) {
			c.problems.Add(c.mention(pointer, src, name), "the input has no %q%s", name, near(name, known))
		}
	}
}

var (
	memberPattern = regexp.MustCompile(`\bsteps\.([a-z0-9_]+)\.([A-Za-z0-9_]+)([.\[]?)`)
	quotedPattern = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	guardPattern  = regexp.MustCompile(`\bnull\b|\.status\b|\bhas\(|\?`)
)

// members checks the word after steps.X, which the expression language itself
// cannot: to it a step is a map like any other.
func (c *checker) members(i int, pointer string, src any, bare bool) {
	eachString(src, "", func(sub, text string) {
		parts := []expr.Part{{Kind: expr.Expression, Text: text}}
		if !bare {
			t, err := expr.CompileText(text, naming)
			if err != nil {
				return
			}
			parts = t.Parts
		}
		for _, part := range parts {
			if part.Kind == expr.Expression {
				c.membersOf(i, part.Text, func(offset int) strictyaml.Pos {
					return c.marks.inside(pointer, sub, part.Offset+offset)
				})
			}
		}
	})
}

func (c *checker) membersOf(i int, src string, at func(offset int) strictyaml.Pos) {
	blank := func(quoted string) string { return strings.Repeat(" ", len(quoted)) }
	src = quotedPattern.ReplaceAllStringFunc(src, blank)
	for _, m := range memberPattern.FindAllStringSubmatchIndex(src, -1) {
		id, member, deeper := src[m[2]:m[3]], src[m[4]:m[5]], m[6] < m[7]
		if !slices.Contains(stepFields, member) {
			c.problems.Add(at(m[4]), "a step has output and status, not %q%s", member, near(member, stepFields))
		}
		if member == "output" && deeper && c.skippable(i, id) && !guardPattern.MatchString(src) {
			c.warnings.Add(at(m[2]), "step %s may be skipped; its output is null then, and this fails: ask steps.%s.status first", id, id)
		}
	}
}

// skippable reports whether step id may be skipped while step i runs.
func (c *checker) skippable(i int, id string) bool {
	n, ok := c.index[id]
	if !ok || c.nodes[n].When == "" {
		return false
	}
	return i >= len(c.nodes) || c.nodes[i].When != c.nodes[n].When
}

// mention is the place where the source first says word, else of the source.
func (c *checker) mention(pointer string, src any, word string) (pos strictyaml.Pos) {
	pos = c.marks.pos(pointer)
	pattern, found := regexp.MustCompile(`\b`+regexp.QuoteMeta(word)+`\b`), false
	eachString(src, "", func(sub, text string) {
		if found {
			return
		}
		for _, m := range pattern.FindAllStringIndex(text, -1) {
			if before := strings.TrimRight(text[:m[0]], `"' `); strings.HasSuffix(before, ".") || strings.HasSuffix(before, "[") {
				pos, found = c.marks.inside(pointer, sub, m[0]), true
				return
			}
		}
	})
	return pos
}

// eachString visits the strings of a JSON value in a fixed order.
func eachString(v any, at string, visit func(pointer, text string)) {
	switch v := v.(type) {
	case string:
		visit(at, v)
	case []any:
		for i, x := range v {
			eachString(x, fmt.Sprintf("%s/%d", at, i), visit)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			eachString(v[key], at+"/"+pointerEscape.Replace(key), visit)
		}
	}
}

// sensitive checks that what is declared sensitive is part of what the schema
// describes, and keeps its values out of messages. what names that.
func (c *checker) sensitive(s *schema.Schema, at, what string, pointers []string) *schema.Schema {
	if s == nil {
		return nil
	}
	for i, p := range pointers {
		at := fmt.Sprintf("%s/%d", at, i)
		tokens, ok := canon.Tokens(p)
		if !ok || len(tokens) == 0 {
			c.fault(at, "%q is not a JSON Pointer into the %s, such as /card", p, what)
			continue
		}
		if !s.Admits(p) {
			c.fault(at, "%q names nothing in the %s", p, what)
		}
	}
	return s.Hiding(pointers...)
}

// schemaOf compiles the schema of an object and turns its lints into
// warnings. what names it.
func (c *checker) schemaOf(source any, at, what string) *schema.Schema {
	s, err := schema.Compile(source, schema.Options{Object: true})
	if err != nil {
		fault := problem.From(err)
		for _, f := range fault.Fields {
			c.problems.Add(c.marks.inside(at, f.Pointer, 0), "%s: %s", what, f.Message)
		}
		if len(fault.Fields) == 0 {
			c.fault(at, "%s: %s", what, fault.Message)
		}
		return nil
	}
	for _, lint := range s.Lint() {
		c.warn(at, "%s: %s", what, lint)
	}
	return s
}
