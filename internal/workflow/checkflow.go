package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"countersign/internal/schema"
)

// rules checks where the step's rules lead.
func (c *checker) rules(i int, st *formStep, at string) {
	c.rule(i, at+"/then", st.Then, DoNext, DoEnd)
	for _, class := range slices.Sorted(maps.Keys(st.OnError)) {
		pointer := at + "/on_error/" + class
		if class != defaultClass && !slices.Contains(Classes, class) {
			c.fault(pointer, "there is no error class %q", class)
		}
		c.rule(i, pointer, st.OnError[class], DoFail, DoEnd, DoAsk)
	}
	if _, ok := st.OnError[defaultClass]; !ok {
		c.fault(at+"/on_error", "on_error has no default")
	}
	c.ending(i, at+"/on_reject", st.OnReject, st.rejects())
	c.ending(i, at+"/on_expire", st.OnExpire, st.expires())
}

// ending checks the rule for a no or for silence, which a step has or has not.
func (c *checker) ending(i int, pointer string, r *Rule, needed bool) {
	switch {
	case r == nil && needed:
		c.fault(pointer, "the rule is missing")
	case r != nil && !needed:
		c.fault(pointer, "the step has no such rule")
	case r != nil:
		c.rule(i, pointer, *r, DoEnd)
	}
}

// rule checks one rule: its word, its target and its bound.
func (c *checker) rule(i int, pointer string, r Rule, words ...string) {
	if r.Do != DoGoto {
		if !slices.Contains(words, r.Do) {
			c.fault(pointer, "%q is not a rule here", r.Do)
		}
		return
	}
	if r.To == "" {
		return // the missing goto has its own message
	}
	to, ok := c.index[r.To]
	switch bound := pointer + "/max_passes"; {
	case !ok:
		c.fault(pointer+"/goto", "there is no step %q%s", r.To, near(r.To, c.ids))
	case c.nodes[to].list != c.nodes[i].list:
		c.fault(pointer+"/goto", "%s is in another list of steps: a goto stays inside its own branch", r.To)
	case to > i && r.MaxPasses != 0:
		c.fault(bound, "going forward to %s cannot loop: leave max_passes out", r.To)
	case to <= i && r.MaxPasses == 0 && !c.marked(bound):
		c.fault(pointer, "a loop needs a bound: going back to %s needs max_passes from 1 to %d", r.To, passesMax)
	case to <= i && (r.MaxPasses < 1 || r.MaxPasses > passesMax):
		c.fault(bound, "max_passes is from 1 to %d, not %d", passesMax, r.MaxPasses)
	}
}

// leads lists where control may go from a step of a list, as places in it;
// past the last step is the end.
func (c *checker) leads(i int) []int {
	st := c.nodes[i]
	var to []int
	if st.Then.Do == DoNext || st.When != "" {
		to = append(to, st.pos+1)
	}
	for _, r := range st.allRules() {
		if r.Do == DoGoto {
			to = append(to, c.nodes[c.index[r.To]].pos)
		}
	}
	return to
}

func (st *formStep) allRules() []Rule {
	rules := []Rule{st.Then}
	for _, r := range []*Rule{st.OnReject, st.OnExpire} {
		if r != nil {
			rules = append(rules, *r)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(st.OnError)) {
		rules = append(rules, st.OnError[class])
	}
	return rules
}

// reach reports the steps that control can never come to.
func (c *checker) reach() {
	for _, l := range c.lists {
		c.reachIn(l.nodes)
	}
}

func (c *checker) reachIn(nodes []int) {
	seen, queue := map[int]bool{0: true}, []int{0}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if i >= len(nodes) {
			continue
		}
		for _, to := range c.leads(nodes[i]) {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	for i, n := range nodes {
		if !seen[i] {
			c.fault(c.nodes[n].at, "step %s can never run: %s", c.nodes[n].ID, always(*c.nodes[nodes[i-1]].formStep, seen[i-1]))
		}
	}
}

func always(before formStep, runs bool) string {
	switch {
	case !runs:
		return fmt.Sprintf("step %s before it cannot either", before.ID)
	case before.Then.Do == DoGoto:
		return fmt.Sprintf("step %s before it always goes to %s", before.ID, before.Then.To)
	}
	return fmt.Sprintf("step %s before it always ends the run", before.ID)
}

// tool checks that the step names a tool of the right effect and fits its
// parameters as far as can be seen before anything is evaluated.
func (c *checker) tool(st *formStep, at string) {
	if st.Kind != Call && st.Kind != Action {
		return
	}
	c.params(st, at)
	switch {
	case st.Tool == "" && c.loaded():
		c.fault(at+"/tool", "the name of a tool is missing")
		return
	case st.Tool == "" || c.loaded():
		return
	}
	info, ok := c.catalog.Tool(st.Tool)
	switch {
	case !ok:
		c.fault(at+"/tool", "there is no tool %q%s", st.Tool, near(st.Tool, c.catalog.ToolNames()))
		return
	case info.Broken:
		return
	case info.Write && st.Kind == Call:
		c.fault(at+"/tool", "%s changes the world (effect: write): use `action: %s`, so that it is approved and recorded", st.Tool, st.Tool)
	case !info.Write && st.Kind == Action:
		c.fault(at+"/tool", "%s only reads (effect: read): use `call: %s`", st.Tool, st.Tool)
	}
	c.fits(st, at, info)
}

func (c *checker) params(st *formStep, at string) {
	switch with := st.With.(type) {
	case nil, map[string]any:
	case string:
		if !strings.HasPrefix(with, "${") || !strings.HasSuffix(with, "}") {
			c.fault(at+"/with", "with is a map of parameters, or one expression that gives it")
		}
	default:
		c.fault(at+"/with", "with is a map of parameters, or one expression that gives it")
	}
}

// fits compares the names in `with` with the tool's parameters.
func (c *checker) fits(st *formStep, at string, info ToolInfo) {
	with, ok := st.With.(map[string]any)
	if !ok || info.Params == nil {
		return
	}
	source, _ := info.Params.Source().(map[string]any)
	properties, _ := source["properties"].(map[string]any)
	if known, only := schema.OnlyNames(source); only {
		for _, name := range slices.Sorted(maps.Keys(with)) {
			if _, ok := properties[name]; !ok {
				c.problems.Add(c.marks.inside(at+"/with", "/"+pointerEscape.Replace(name), 0),
					"%s has no parameter %q%s", st.Tool, name, near(name, known))
			}
		}
	}
	required, _ := source["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		property, _ := properties[name].(map[string]any)
		if _, ok := with[name]; !ok && property["default"] == nil {
			c.fault(at+"/with", "%s needs the parameter %q", st.Tool, name)
		}
	}
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")
