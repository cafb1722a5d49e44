package workflow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/internal/strictyaml"
)

// marks remembers which node each part of the form came from, by JSON Pointer
// into the form. A form that was loaded has none.
type marks struct {
	file string
	node map[string]*strictyaml.Node
}

// pos is the place of the pointer, or of the nearest part around it.
func (m marks) pos(pointer string) strictyaml.Pos { return m.inside(pointer, "", 0) }

// inside is the place of a byte in the string that sub names inside the value
// at the pointer.
func (m marks) inside(pointer, sub string, offset int) strictyaml.Pos {
	for {
		if n, ok := m.node[pointer]; ok {
			if sub == "" && n.Kind != strictyaml.KindScalar {
				return n.Pos
			}
			return n.FindOffset(sub, offset)
		}
		cut := strings.LastIndexByte(pointer, '/')
		if cut < 0 {
			return strictyaml.Pos{File: m.file}
		}
		pointer, sub, offset = pointer[:cut], "", 0
	}
}

// parser turns the YAML tree into the form, noting problems and places.
type parser struct {
	marks
	problems strictyaml.Problems
	count    int // steps so far
}

func (p *parser) fault(n *strictyaml.Node, format string, args ...any) {
	p.problems.Add(n.Pos, format, args...)
}

// mark notes where the pointer was written.
func (p *parser) mark(pointer string, n *strictyaml.Node) *strictyaml.Node {
	if n != nil {
		p.node[pointer] = n
	}
	return n
}

// parse reads the document into a form. Faults are in p.problems.
func (p *parser) parse(root *strictyaml.Node) *form {
	p.mark("", root)
	m := root.Map(&p.problems, "format", "workflow", "version", "title", "input", "sensitive", "steps", "output", "migrate")
	f := &form{Type: formType}
	f.Format = p.integer(m, "format", "/format")
	if n := m.Need("workflow"); n != nil {
		f.Workflow = p.mark("/workflow", n).String(&p.problems)
	}
	f.Version = p.integer(m, "version", "/version")
	if f.Title = p.text(m, "title", "/title"); f.Title == "" {
		f.Title = title(f.Workflow)
	}
	f.Input = map[string]any{"type": "object", "additionalProperties": false}
	if n := m.Get("input"); n != nil {
		f.Input = p.json(n, "/input")
	}
	if n := m.Get("sensitive"); n != nil {
		f.Sensitive = p.mark("/sensitive", n).Strings(&p.problems)
	}
	if n := m.Get("output"); n != nil {
		f.Output = p.json(n, "/output")
	}
	if n := m.Need("steps"); n != nil {
		f.Steps = p.steps(p.mark("/steps", n), "/steps", 0)
	}
	if n := m.Get("migrate"); n != nil {
		f.Migrate = p.migrations(p.mark("/migrate", n))
	}
	return f
}

// title makes a readable title of an id.
func title(id string) string {
	if id == "" {
		return ""
	}
	words := strings.NewReplacer("_", " ", "-", " ").Replace(id)
	return strings.ToUpper(words[:1]) + words[1:]
}

func (p *parser) steps(n *strictyaml.Node, at string, depth int) []formStep {
	nodes := n.Seq(&p.problems)
	if p.count += len(nodes); p.count > stepsMax {
		p.fault(n, "a workflow has at most %d steps; this one has %d", stepsMax, p.count)
		return nil
	}
	steps := make([]formStep, 0, len(nodes))
	for i, node := range nodes {
		pointer := fmt.Sprintf("%s/%d", at, i)
		steps = append(steps, p.step(p.mark(pointer, node), pointer, depth))
	}
	return steps
}

// stepKeys says for which kinds of steps each key is.
var stepKeys = map[string][]Kind{
	"with": {Call, Action}, "retry": {Call, Action}, "timeout": {Call, Action},
	"fresh_for": {Call}, "key": {Action}, "reason": {Action},
	"form": {Ask}, "who": {Ask}, "sensitive": {Ask}, "answer_within": {Ask},
	"on_reject": {Action, Gate}, "on_expire": {Action, Gate, Ask},
}

var (
	kindKeys  = []string{"call", "action", "approve", "ask", "set", "sleep", "parallel"}
	laterKeys = []string{"agent", "for_each"}
	allKeys   = slices.Concat([]string{"id", "title", "when"}, kindKeys, laterKeys,
		[]string{"with", "key", "reason", "retry", "timeout", "fresh_for", "form", "who", "sensitive", "answer_within", "then", "on_reject", "on_expire", "on_error"})
)

func (p *parser) step(n *strictyaml.Node, at string, depth int) formStep {
	var st formStep
	m := n.Map(&p.problems, allKeys...)
	if id := m.Need("id"); id != nil {
		st.ID = p.mark(at+"/id", id).String(&p.problems)
	}
	if st.Title = p.text(m, "title", at+"/title"); st.Title == "" {
		st.Title = title(st.ID)
	}
	st.When = p.text(m, "when", at+"/when")
	if st.Kind = p.kind(n, m); st.Kind == "" {
		return st
	}
	for _, key := range m.Keys() {
		if kinds, ok := stepKeys[key]; ok && !slices.Contains(kinds, st.Kind) {
			p.fault(m.Get(key), "%s is for %s steps; this is %s step", key, kindList(kinds), article(st.Kind))
		}
	}
	p.body(&st, n, m, at)
	if st.Kind == Fork {
		st.Branches = p.branches(m.Get("parallel"), at, depth+1)
	}
	p.rules(&st, m, at)
	return st
}

// kind finds the one key that says what the step does.
func (p *parser) kind(n *strictyaml.Node, m *strictyaml.Map) Kind {
	var found []string
	for _, key := range m.Keys() {
		if slices.Contains(laterKeys, key) {
			p.fault(m.Get(key), "%s steps are not available in this version", key)
			return ""
		}
		if slices.Contains(kindKeys, key) {
			found = append(found, key)
		}
	}
	switch len(found) {
	case 0:
		p.fault(n, "the step does nothing: it needs one of %s", strings.Join(kindKeys, ", "))
		return ""
	case 1:
		return Kind(found[0])
	}
	p.fault(m.Get(found[1]), "a step does one thing; this one has %s", strings.Join(found, " and "))
	return ""
}

// body reads what belongs to the kind.
func (p *parser) body(st *formStep, n *strictyaml.Node, m *strictyaml.Map, at string) {
	switch st.Kind {
	case Call, Action:
		st.Tool = p.text(m, string(st.Kind), at+"/tool")
		st.With = map[string]any{}
		if n := m.Get("with"); n != nil {
			st.With = p.json(n, at+"/with")
		}
		st.Timeout = p.duration(m, "timeout", at+"/timeout").Microseconds()
		st.Retry = p.retry(m.Get("retry"), at+"/retry").form()
	case Gate:
		p.approve(st, m.Get("approve"), at)
	case Ask:
		p.ask(st, n, m, at)
	case Set:
		st.Set = p.json(m.Get("set"), at+"/set")
	case Sleep:
		st.Sleep = p.text(m, "sleep", at+"/sleep")
	}
	switch st.Kind {
	case Call:
		st.FreshFor = p.duration(m, "fresh_for", at+"/fresh_for").Microseconds()
	case Action:
		st.Key = p.text(m, "key", at+"/key")
		st.Reason = p.text(m, "reason", at+"/reason")
	}
}

func (p *parser) approve(st *formStep, n *strictyaml.Node, at string) {
	m := p.mark(at+"/approve", n).Map(&p.problems, "document", "title", "guards", "covers")
	if c := m.Get("covers"); c != nil {
		p.fault(c, "covers is not available in this version")
	} else if d := m.Need("document"); d != nil {
		st.Document = p.json(d, at+"/document")
	}
	st.Heading = p.text(m, "title", at+"/heading")
	if g := m.Get("guards"); g != nil {
		for i, node := range p.mark(at+"/guards", g).Seq(&p.problems) {
			st.Guards = append(st.Guards, p.mark(fmt.Sprintf("%s/guards/%d", at, i), node).String(&p.problems))
		}
	}
}

func (p *parser) retry(n *strictyaml.Node, at string) RetryRule {
	r := defaultRetry
	if p.mark(at, n) == nil {
		return r
	}
	m := n.Map(&p.problems, "max_attempts", "base", "max_delay", "budget")
	if m.Get("max_attempts") != nil {
		r.MaxAttempts = p.integer(m, "max_attempts", at+"/max_attempts")
	}
	for key, d := range map[string]*time.Duration{"base": &r.Base, "max_delay": &r.MaxDelay, "budget": &r.Budget} {
		if m.Get(key) != nil {
			*d = p.duration(m, key, at+"/"+key)
		}
	}
	if r.MaxDelay < r.Base && m.Get("max_delay") == nil {
		r.MaxDelay = r.Base
	}
	return r
}

func (p *parser) migrations(n *strictyaml.Node) []Migration {
	var all []Migration
	for i, node := range n.Seq(&p.problems) {
		at := fmt.Sprintf("/migrate/%d", i)
		m := p.mark(at, node).Map(&p.problems, "from", "rename_steps")
		var g Migration
		g.From = p.integer(m, "from", at+"/from")
		if r := p.mark(at+"/rename_steps", m.Get("rename_steps")); r != nil {
			g.RenameSteps = p.renames(r, at+"/rename_steps")
		}
		all = append(all, g)
	}
	return all
}

// The readers of single values: absent is the zero value.

func (p *parser) text(m *strictyaml.Map, key, pointer string) string {
	if n := p.mark(pointer, m.Get(key)); n != nil {
		return n.String(&p.problems)
	}
	return ""
}

func (p *parser) integer(m *strictyaml.Map, key, pointer string) int {
	if n := p.mark(pointer, m.Need(key)); n != nil {
		return n.Int(&p.problems)
	}
	return 0
}

func (p *parser) json(n *strictyaml.Node, pointer string) any {
	return p.mark(pointer, n).JSON(&p.problems)
}

func (p *parser) renames(n *strictyaml.Node, pointer string) map[string]string {
	m, all := n.Map(&p.problems), map[string]string{}
	for _, old := range m.Keys() {
		all[old] = p.text(m, old, pointer+"/"+old)
	}
	return all
}

func (p *parser) duration(m *strictyaml.Map, key, pointer string) time.Duration {
	if n := p.mark(pointer, m.Get(key)); n != nil {
		return n.Duration(&p.problems)
	}
	return 0
}
