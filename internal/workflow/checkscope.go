package workflow

import (
	"fmt"
	"regexp"
	"slices"
)

// node is a step of the form with where it stands.
type node struct {
	*formStep
	at     string // JSON Pointer into the form
	list   int    // index of its list in checker.lists
	pos    int    // in its list
	parent int    // index of the parallel step around it; -1: none
}

// list is the steps of one scope, as indexes of nodes.
type list struct {
	name  string // of the branch
	nodes []int
}

// flatten lists the steps of the form and of all branches in the order of the
// definition.
func (c *checker) flatten() {
	c.lists = []list{{}}
	c.lay(c.form.Steps, "/steps", 0, -1, 0)
}

func (c *checker) lay(steps []formStep, at string, l, parent, depth int) {
	for i := range steps {
		st := &steps[i]
		n := len(c.nodes)
		c.nodes = append(c.nodes, node{formStep: st, at: fmt.Sprintf("%s/%d", at, i), list: l, pos: i, parent: parent})
		c.lists[l].nodes = append(c.lists[l].nodes, n)
		if depth == depthMax && len(st.Branches) > 0 {
			c.fault(c.nodes[n].at, "parallel steps lie at most %d deep in each other", depthMax)
			continue
		}
		for b := range st.Branches {
			c.lists = append(c.lists, list{name: st.Branches[b].Name})
			c.lay(st.Branches[b].Steps, fmt.Sprintf("%s/%d/branches/%d/steps", at, i, b), len(c.lists)-1, n, depth+1)
		}
	}
}

var branchPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

// branches checks the branches of a parallel step; other kinds have none.
func (c *checker) branches(st *formStep, at string) {
	switch n := len(st.Branches); {
	case st.Kind != Fork && n > 0:
		c.fault(at, "only a parallel step has branches")
	case st.Kind != Fork || n == 0 && !c.present(at+"/branches"):
	case n < 2 || n > branchesMax:
		c.fault(at+"/branches", "a parallel step has from 2 to %d branches; this one has %d", branchesMax, n)
	}
	seen := map[string]bool{}
	for i, b := range st.Branches {
		at := fmt.Sprintf("%s/branches/%d", at, i)
		switch {
		case !branchPattern.MatchString(b.Name) || slices.Contains(reserved, b.Name):
			c.fault(at, "%q is not a branch name: a lower-case letter, then up to 30 of a-z, 0-9 and _, and no word of the expression language", b.Name)
		case seen[b.Name]:
			c.fault(at, "two branches are called %s", b.Name)
		case len(b.Steps) == 0 && c.present(at):
			c.fault(at, "the branch %s has no steps", b.Name)
		}
		seen[b.Name] = true
	}
}

// How one step lies to another.
const (
	before = "before" // control leaves it before it comes to the other
	after  = "after"
	around = "around" // it is a parallel step, and the other is in a branch of it
	inside = "inside"
	apart  = "apart" // in another branch of the same parallel step
	itself = "itself"
)

// relation tells how step n lies to step i, with the steps of their nearest
// common list that they lie in. i may be one past the last: the run's output.
func (c *checker) relation(i, n int) (how string, ci, cn int) {
	if i >= len(c.nodes) {
		return before, i, c.root(n)
	}
	chain := map[int]int{} // list to the step of it that i lies in
	for k := i; k >= 0; k = c.nodes[k].parent {
		chain[c.nodes[k].list] = k
	}
	m := n
	for {
		k, common := chain[c.nodes[m].list]
		switch {
		case !common:
			m = c.nodes[m].parent
			continue
		case i == n:
			return itself, i, n
		case k != m && m < k:
			return before, k, m
		case k != m:
			return after, k, m
		case m == n:
			return around, k, m
		case k == i:
			return inside, k, m
		}
		return apart, k, m
	}
}

// root is the step of the top level that n lies in.
func (c *checker) root(n int) int {
	for c.nodes[n].parent >= 0 {
		n = c.nodes[n].parent
	}
	return n
}

// named tells what keeps step i from naming the output of step n, or nothing.
func (c *checker) unnameable(i, n int) string {
	id := c.nodes[n].ID
	how, _, cn := c.relation(i, n)
	switch {
	case how == itself:
		return fmt.Sprintf("step %s names its own output, which is not there yet", id)
	case how == after:
		return fmt.Sprintf("step %s comes later: its output is not there yet", id)
	case how == around:
		return fmt.Sprintf("step %s lies around this step: its output is not there before its branches have joined", id)
	case how == inside:
		return fmt.Sprintf("step %s is in a branch of this step: its output is not there yet", id)
	case how == apart:
		return fmt.Sprintf("step %s is in another branch of %s: name steps.%s.output after the branches have joined", id, c.nodes[cn].ID, c.nodes[cn].ID)
	case cn != n:
		return fmt.Sprintf("step %s is in a branch of %s: after it, name steps.%s.output.BRANCH, the output of the last step of a branch", id, c.nodes[cn].ID, c.nodes[cn].ID)
	}
	return ""
}

// assemble makes the scopes of the compiled steps.
func (c *checker) assemble() *scope {
	scopes := make([]*scope, len(c.lists))
	for i, l := range c.lists {
		scopes[i] = &scope{name: l.name}
		for _, n := range l.nodes {
			step := c.steps[n]
			step.scope = scopes[i]
			scopes[i].steps = append(scopes[i].steps, step)
			if parent := c.nodes[n].parent; parent >= 0 {
				scopes[i].of = c.steps[parent]
			}
		}
	}
	for _, sc := range scopes[1:] {
		if sc.of != nil {
			sc.of.branches = append(sc.of.branches, sc)
		}
	}
	return scopes[0]
}

// path is where a step stands in a run.
func (c *checker) path(n int) string {
	st := c.nodes[n]
	if st.parent < 0 {
		return st.ID
	}
	return c.path(st.parent) + "/" + c.lists[st.list].name + "/" + st.ID
}

// paths are those of the ids that there are, sorted.
func (c *checker) paths(ids []string) []string {
	var paths []string
	for _, id := range ids {
		if n, ok := c.index[id]; ok {
			paths = append(paths, c.path(n))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// ages checks that no age counts across branches: a step of a branch is not
// built on a read from before the branches that goes stale, nor what follows
// the branches on one of theirs, because reading it again would take back what
// other branches have done with it.
func (c *checker) ages(w *Workflow) {
	for i, step := range c.steps {
		for _, read := range w.aging(step.refs, map[string]bool{}) {
			n := c.index[read.ID]
			if c.nodes[n].list == c.nodes[i].list {
				continue
			}
			c.fault(c.nodes[i].at, "step %s is built on %s, which has fresh_for and is not in the same list of steps: read it again there, or leave fresh_for out of %s",
				step.ID, read.ID, read.ID)
		}
	}
}

// aging lists the reads with fresh_for that outputs at the paths are made of,
// not beyond what is decided, done, answered or waited for.
func (w *Workflow) aging(refs []string, seen map[string]bool) []*Step {
	var reads []*Step
	for _, path := range refs {
		step, ok := w.byPath[path]
		if !ok || seen[path] {
			continue
		}
		seen[path] = true
		switch step.Kind {
		case Call, Set:
			if step.FreshFor > 0 {
				reads = append(reads, step)
			}
			reads = append(reads, w.aging(step.refs, seen)...)
		case Fork:
			for _, b := range step.branches {
				reads = append(reads, w.aging([]string{b.last().Path}, seen)...)
			}
		}
	}
	return reads
}
