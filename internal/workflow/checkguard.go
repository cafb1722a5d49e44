package workflow

import (
	"fmt"
	"maps"
	"slices"
)

// guards checks that an approval stands before what it is to guard. What it
// guards is said in `guards`; without that, there must be an action after it.
func (c *checker) guards(i int, st *formStep, at string) {
	if st.Kind != Gate {
		return
	}
	if len(st.Guards) > guardsMax {
		c.fault(at+"/guards", "an approve step guards at most %d actions", guardsMax)
		return
	}
	for n, id := range st.Guards {
		pointer := fmt.Sprintf("%s/guards/%d", at, n)
		g, ok := c.index[id]
		if !ok {
			c.fault(pointer, "there is no step %q%s", id, near(id, c.ids))
			continue
		}
		how, gate, held := c.relation(i, g)
		switch {
		case c.nodes[g].Kind != Action:
			c.fault(pointer, "%s is %s step; an approval guards actions", id, article(c.nodes[g].Kind))
		case how == apart:
			c.fault(pointer, "%s is in another branch, which does not wait for this approval: put the approval before the branches, or %s into this one", id, id)
		case how == before:
			c.fault(pointer, "%s runs before this approval, which is to guard it: move the approval up", id)
		case gate != i:
			c.fault(pointer, "%s lies behind the branch that this approval is in: an approval guards what follows it in its own list of steps", id)
		default:
			c.around(i, g, held)
		}
	}
	if len(st.Guards) == 0 && !c.acts(i, after) {
		text := "nothing after this approval changes anything in the world"
		if c.acts(i, before) {
			text += ": it asks about what is already done"
		}
		c.warn(at, "%s", text)
	}
}

// acts reports whether an action lies so to step i.
func (c *checker) acts(i int, lies string) bool {
	for n := range c.nodes {
		if how, _, _ := c.relation(i, n); how == lies && c.nodes[n].Kind == Action {
			return true
		}
	}
	return false
}

// around reports the ways past the gate to the action it guards: jumps over
// it, its own rules for no and for silence, and a `when`. held is the step of
// the gate's list that the action lies in.
func (c *checker) around(gate, action, held int) {
	id, guarded := c.nodes[gate].ID, c.nodes[action].ID
	for _, i := range c.lists[c.nodes[gate].list].nodes[:c.nodes[gate].pos+1] {
		st := c.nodes[i]
		ways := map[string]Rule{"/then": st.Then}
		for key, r := range map[string]*Rule{"/on_reject": st.OnReject, "/on_expire": st.OnExpire} {
			if r != nil {
				ways[key] = *r
			}
		}
		for class, r := range st.OnError {
			ways["/on_error/"+class] = r
		}
		for _, key := range slices.Sorted(maps.Keys(ways)) {
			to, ok := c.index[ways[key].To]
			if !ok || ways[key].Do != DoGoto || to <= gate || to > held || i == gate && key == "/then" {
				continue
			}
			c.fault(st.at+key, "this goes past the approval %s to %s, which it guards", id, guarded)
		}
	}
	if when := c.nodes[gate].When; when != "" && !c.skippedWith(when, action, held) {
		c.fault(c.nodes[gate].at+"/when", "the approval may be skipped, but %s, which it guards, runs anyway: give %s the same `when`", guarded, guarded)
	}
}

// skippedWith reports whether the action, or a step around it up to held, has
// the same `when`.
func (c *checker) skippedWith(when string, action, held int) bool {
	for n := action; ; n = c.nodes[n].parent {
		if c.nodes[n].When == when {
			return true
		}
		if n == held {
			return false
		}
	}
}
