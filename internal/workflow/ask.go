package workflow

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"countersign/internal/schema"
	"countersign/internal/strictyaml"
)

// roleDefault may answer a question that does not say who.
const roleDefault = "operator"

var rolePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// ask reads what belongs to a question.
func (p *parser) ask(st *formStep, n *strictyaml.Node, m *strictyaml.Map, at string) {
	st.Question = p.text(m, "ask", at+"/question")
	if f := m.Get("form"); f != nil {
		st.Form = p.json(f, at+"/form")
	} else {
		p.fault(n, "a question needs a form: the JSON Schema that its answer must fit")
	}
	st.Who = p.who(m.Get("who"), at+"/who")
	if s := m.Get("sensitive"); s != nil {
		st.Sensitive = p.list(s, at+"/sensitive")
	}
	st.AnswerWithin = p.duration(m, "answer_within", at+"/answer_within").Microseconds()
}

// who reads {role: X} or {roles: [X, Y]}.
func (p *parser) who(n *strictyaml.Node, at string) []string {
	if p.mark(at, n) == nil {
		return []string{roleDefault}
	}
	m := n.Map(&p.problems, "role", "roles")
	switch {
	case m.Has("role") && m.Has("roles"), len(m.Keys()) == 0:
		p.fault(n, "who is {role: NAME} or {roles: [NAME, NAME]}")
	case m.Has("role"):
		return []string{p.text(m, "role", at+"/0")}
	case m.Has("roles"):
		return p.list(m.Get("roles"), at)
	}
	return nil
}

// list reads a list of strings, each with its place.
func (p *parser) list(n *strictyaml.Node, at string) []string {
	all := []string{}
	for i, node := range p.mark(at, n).Seq(&p.problems) {
		all = append(all, p.mark(fmt.Sprintf("%s/%d", at, i), node).String(&p.problems))
	}
	return all
}

// asks checks a question; other kinds have none of its parts.
func (c *checker) asks(st *formStep, at string) {
	if st.Kind != Ask {
		if st.Question != "" || st.Form != nil || st.Who != nil || st.Sensitive != nil || st.AnswerWithin != 0 {
			c.fault(at, "only an ask step asks")
		}
		return
	}
	if strings.TrimSpace(st.Question) == "" && c.present(at+"/question") {
		c.fault(at+"/question", "the question is missing: say what is to be answered")
	}
	c.bounded(at+"/answer_within", "answer_within", st.AnswerWithin, st.AnswerWithin != 0 || c.marked(at+"/answer_within"))
	c.roles(st.Who, at+"/who")
}

func (c *checker) roles(who []string, at string) {
	switch {
	case who == nil && !c.loaded(): // what was written has its own message
	case len(who) == 0:
		c.fault(at, "a question that nobody may answer: name at least one role")
	case len(who) > rolesMax:
		c.fault(at, "at most %d roles may answer; these are %d", rolesMax, len(who))
	}
	for i, role := range who {
		pointer := fmt.Sprintf("%s/%d", at, i)
		switch {
		case !rolePattern.MatchString(role):
			c.fault(pointer, "%q is not a role: a lower-case letter, then up to 31 of a-z, 0-9 and -", role)
		case slices.Contains(who[:i], role):
			c.fault(pointer, "the role %s is named twice", role)
		}
	}
}

// formOf compiles the form of a question.
func (c *checker) formOf(f *formStep, at string) *schema.Schema {
	if f.Form == nil && !c.loaded() {
		return nil // it is missing, which was said
	}
	return c.sensitive(c.schemaOf(f.Form, at+"/form", "form"), at+"/sensitive", "answer", f.Sensitive)
}

// PrepareAnswer applies the defaults of an ask step's form, validates, and
// returns the canonical answer: what becomes the step's output. No answer is
// {}.
func (st *Step) PrepareAnswer(v json.RawMessage) (json.RawMessage, error) {
	return prepare(st.Form, v, "The answer")
}
