package approvals

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"countersign/internal/expr"
	"countersign/internal/id"
	"countersign/internal/strictyaml"
)

// CompilePolicy reads a policy. The error is strictyaml.Problems: every fault
// of the file at once, each at its place. Nothing that is missing, empty or
// misspelled is ever read as "needs nobody".
func CompilePolicy(file string, src []byte) (*Policy, error) {
	root, err := strictyaml.Parse(file, src)
	if err != nil {
		return nil, err
	}
	var p strictyaml.Problems
	spec := policyReader{&p}.policy(root)
	if err := p.Err(); err != nil {
		return nil, err
	}
	return spec.build()
}

type policyReader struct{ p *strictyaml.Problems }

// nameForm is the form of the names of policies, rules, groups and roles.
var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

func (r policyReader) name(n *strictyaml.Node, what string) string {
	s := n.String(r.p)
	if n != nil && s != "" && !nameForm.MatchString(s) {
		r.p.Add(n.Pos, "the %s %q must begin with a letter and hold at most 64 of a-z, 0-9, - and _", what, s)
	}
	if n != nil && n.Kind == strictyaml.KindScalar && s == "" {
		r.p.Add(n.Pos, "the %s is empty", what)
	}
	return s
}

func (r policyReader) policy(root *strictyaml.Node) policySpec {
	m := root.Map(r.p, "format", "policy", "version", "on_error", "rules")
	s := policySpec{Type: policyType, Format: m.Need("format").Int(r.p), Policy: r.name(m.Need("policy"), "name of the policy"),
		Version: m.Need("version").Int(r.p), OnError: byApproverSpec()}
	if m.Has("format") && s.Format != 1 {
		r.p.Add(m.Get("format").Pos, "format %d is not known; write 1", s.Format)
	}
	if m.Has("version") && s.Version < 1 {
		r.p.Add(m.Get("version").Pos, "versions count from 1")
	}
	if m.Has("on_error") {
		s.OnError = r.ask(m.Get("on_error"))
	}
	s.Rules = r.rules(m.Need("rules"))
	return s
}

func byApproverSpec() askSpec {
	a := byApprover()
	return askSpec{Groups: a.Groups, DecideWithinUs: a.DecideWithin.Microseconds(), ExecuteWithinUs: a.ExecuteWithin.Microseconds()}
}

func (r policyReader) rules(n *strictyaml.Node) []ruleSpec {
	items := n.Seq(r.p)
	if len(items) > rulesMax {
		r.p.Add(n.Pos, "there are %d rules; at most %d are read", len(items), rulesMax)
		return nil
	}
	rules, places := []ruleSpec{}, map[string]strictyaml.Pos{}
	for _, item := range items {
		s := r.rule(item)
		if first, twice := places[s.Name]; twice && s.Name != "" {
			r.p.Add(item.Pos, "the rule %q is already at %s; give one of them another name", s.Name, first)
		}
		places[s.Name] = item.Pos
		rules = append(rules, s)
	}
	return rules
}

func (r policyReader) rule(n *strictyaml.Node) ruleSpec {
	m := n.Map(r.p, "name", "when", "allow", "deny", "approve")
	s := ruleSpec{Name: r.name(m.Need("name"), "name of the rule"), When: r.condition(m.Need("when"))}
	if s.Name == RuleNone || s.Name == RuleError {
		r.p.Add(m.Get("name").Pos, "the name %q stands for something else; choose another", s.Name)
	}
	var said []string
	for _, effect := range []string{"allow", "deny", "approve"} {
		if m.Has(effect) {
			said = append(said, effect)
		}
	}
	switch {
	case n.Kind != strictyaml.KindMap: // which is reported
	case len(said) == 0:
		r.p.Add(m.Pos, "the rule says nothing; write one of allow: true, deny: true and approve: {groups: …}")
	case len(said) > 1:
		r.p.Add(m.KeyPos(said[1]), "the rule says %s; keep one of them", strings.Join(said, " and "))
	default:
		s.Effect = Effect(said[0])
		r.effect(m, &s)
	}
	return s
}

func (r policyReader) effect(m *strictyaml.Map, s *ruleSpec) {
	n := m.Get(string(s.Effect))
	if s.Effect == Approve {
		a := r.ask(n)
		s.Approve = &a
		return
	}
	before := len(*r.p)
	if yes := n.Bool(r.p); !yes && len(*r.p) == before {
		r.p.Add(n.Pos, "%s: false says nothing; write %s: true, or leave the rule out", s.Effect, s.Effect)
	}
}

func (r policyReader) condition(n *strictyaml.Node) string {
	src := n.String(r.p)
	switch {
	case n == nil || n.Kind != strictyaml.KindScalar:
	case strings.TrimSpace(src) == "":
		r.p.Add(n.Pos, `the condition is empty; write "true" for a rule that always applies`)
	case strings.HasPrefix(src, "${"):
		r.p.Add(n.Pos, "`when` is an expression as it stands: write it without ${ }")
	default:
		_, err := expr.CompileCondition(src, conditionNames)
		var faults expr.Errors
		if errors.As(err, &faults) {
			for _, f := range faults {
				r.p.Add(n.FindOffset("", f.Offset), "%s", f.Message)
			}
		} else if err != nil {
			r.p.Add(n.Pos, "%v", err)
		}
	}
	return src
}

// ask reads what approve and on_error say.
func (r policyReader) ask(n *strictyaml.Node) askSpec {
	m := n.Map(r.p, "groups", "decide_within", "execute_within", "initiator_may_decide", "editor_may_approve", "reauthenticate")
	s := askSpec{
		DecideWithinUs:     r.within(m.Get("decide_within"), decideWithinDefault, decideWithinMax).Microseconds(),
		ExecuteWithinUs:    r.within(m.Get("execute_within"), executeWithinDefault, executeWithinMax).Microseconds(),
		InitiatorMayDecide: m.Get("initiator_may_decide").Bool(r.p), Reauthenticate: m.Get("reauthenticate").Bool(r.p),
	}
	if e := m.Get("editor_may_approve"); e != nil {
		b := e.Bool(r.p)
		s.EditorMayApprove = &b
	}
	groups := m.Need("groups")
	items := groups.Seq(r.p)
	switch {
	case groups == nil || groups.Kind != strictyaml.KindSeq:
	case len(items) == 0:
		r.p.Add(groups.Pos, "the list of groups is empty: nobody could approve; name at least one group, or write deny: true")
	case len(items) > groupsMax:
		r.p.Add(groups.Pos, "there are %d groups; at most %d are read", len(items), groupsMax)
	default:
		s.Groups = r.groups(items)
	}
	return s
}

func (r policyReader) within(n *strictyaml.Node, otherwise, most time.Duration) time.Duration {
	if n == nil {
		return otherwise
	}
	before := len(*r.p)
	d := n.Duration(r.p)
	switch {
	case len(*r.p) > before:
	case d < time.Second:
		r.p.Add(n.Pos, "%s leaves no time; give at least 1s", d)
	case d > most:
		r.p.Add(n.Pos, "%s is too long; at most %dd", d, int(most.Hours()/24))
	}
	return d
}

func (r policyReader) groups(items []*strictyaml.Node) []Group {
	var groups []Group
	for _, item := range items {
		g := r.group(item)
		if slices.ContainsFunc(groups, func(o Group) bool { return o.Name == g.Name && g.Name != "" }) {
			r.p.Add(item.Pos, "the group %q is there twice; raise its need, or give one of them another name", g.Name)
		}
		groups = append(groups, g)
	}
	return groups
}

func (r policyReader) group(n *strictyaml.Node) Group {
	m := n.Map(r.p, "name", "role", "people", "need")
	need := m.Need("need")
	before := len(*r.p)
	g := Group{Need: need.Int(r.p)}
	if need != nil && len(*r.p) == before && (g.Need < 1 || g.Need > needMax) {
		r.p.Add(need.Pos, "a group needs between 1 and %d people, not %d: nothing is approved by nobody", needMax, g.Need)
	}
	switch {
	case n.Kind != strictyaml.KindMap:
	case m.Has("role") == m.Has("people"):
		r.p.Add(m.Pos, "a group has either a role or a list of people")
	case m.Has("role"):
		g.Role = r.name(m.Get("role"), "role")
		g.Name = g.Role
	default:
		g.People = r.people(m.Get("people"), g.Need)
		g.Name = fmt.Sprintf("%d named people", len(g.People))
	}
	if m.Has("name") {
		g.Name = r.name(m.Get("name"), "name of the group")
	}
	return g
}

// people are ids: a name or an address may pass to somebody else.
func (r policyReader) people(n *strictyaml.Node, need int) []id.Person {
	var all []id.Person
	for _, item := range n.Seq(r.p) {
		p := id.Person(item.String(r.p))
		switch {
		case p == "":
		case !id.Valid("usr_", string(p)):
			r.p.Add(item.Pos, "%q is not the id of a person (usr_…)", string(p))
		case slices.Contains(all, p):
			r.p.Add(item.Pos, "%s is listed twice", p)
		}
		all = append(all, p)
	}
	switch {
	case n.Kind != strictyaml.KindSeq:
	case len(all) > peopleMax:
		r.p.Add(n.Pos, "there are %d people; at most %d are read", len(all), peopleMax)
	case len(all) == 0:
		r.p.Add(n.Pos, "the list of people is empty: nobody could approve")
	case len(all) < need:
		r.p.Add(n.Pos, "the group needs %d people but names %d", need, len(all))
	}
	return all
}
