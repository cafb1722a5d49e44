package workflow

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"countersign/internal/strictyaml"
)

// checker holds a form against the rules of the language. It serves both
// Compile, where marks know the lines, and Load, where they know none.
type checker struct {
	form     *form
	marks    marks
	catalog  Catalog // of a file only: a stored form's tools were checked when it was stored
	problems strictyaml.Problems
	warnings strictyaml.Problems
	index    map[string]int // of nodes, by id
	ids      []string
	steps    []*Step // compiled, as nodes
	nodes    []node  // the steps of all lists, in the order of the definition
	lists    []list  // the top level, then the branches
	top      *scope
}

func (c *checker) fault(pointer, format string, args ...any) {
	c.problems.Add(c.marks.pos(pointer), format, args...)
}

func (c *checker) warn(pointer, format string, args ...any) {
	c.warnings.Add(c.marks.pos(pointer), format, args...)
}

var (
	idPattern   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	namePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
)

// reserved are words of the expression language that `steps.WORD` cannot say.
var reserved = []string{"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in",
	"let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"}

// check runs every check; the later ones look only at what the earlier ones
// found sound, so that one slip gives one message.
func (c *checker) check() {
	c.flatten()
	c.head()
	c.identify()
	for i := range c.nodes {
		c.step(i)
	}
	c.top = c.assemble()
	if len(c.problems) == 0 {
		c.reach()
	}
	c.migrations()
}

func (c *checker) head() {
	f := c.form
	if f.Format != 1 && c.present("/format") {
		c.fault("/format", "format %d is not known to this version; it reads format 1", f.Format)
	}
	if f.Workflow != "" && !namePattern.MatchString(f.Workflow) {
		c.fault("/workflow", "%q is not a workflow name: a lower-case letter, then up to 62 of a-z, 0-9, _ and -", f.Workflow)
	}
	if c.present("/version") && (f.Version < 1 || f.Version > versionMax) {
		c.fault("/version", "a version is a whole number from 1 to %d, not %d", versionMax, f.Version)
	}
	c.titled("/title", f.Title)
	if c.present("/steps") && len(f.Steps) == 0 {
		c.fault("/steps", "a workflow has at least one step")
	}
	if len(c.nodes) > stepsMax {
		c.fault("/steps", "a workflow has at most %d steps; this one has %d", stepsMax, len(c.nodes))
	}
}

// loaded reports whether the form comes from Load: without marks, with all
// parts, and with nobody before who complained of a missing one.
func (c *checker) loaded() bool { return c.marks.node == nil }

// marked reports whether the part was written.
func (c *checker) marked(pointer string) bool { _, ok := c.marks.node[pointer]; return ok }

// present reports whether there is something to check at the pointer; a part
// that is missing in a file has its own message already.
func (c *checker) present(pointer string) bool { return c.marked(pointer) || c.loaded() }

func (c *checker) titled(pointer, text string) {
	if n := utf8.RuneCountInString(text); n > titleRunesMax {
		c.fault(pointer, "a title has at most %d characters; this one has %d", titleRunesMax, n)
	}
}

// identify checks the ids and indexes the steps by them.
func (c *checker) identify() {
	c.index = make(map[string]int, len(c.nodes))
	for i, st := range c.nodes {
		pointer := st.at + "/id"
		switch first, twice := c.index[st.ID]; {
		case st.ID == "":
			if c.loaded() {
				c.fault(pointer, "a step id cannot be empty")
			}
			continue
		case twice:
			c.fault(pointer, "two steps are called %s: the other is at %s", st.ID, c.marks.pos(c.nodes[first].at+"/id"))
			continue
		case !idPattern.MatchString(st.ID):
			c.fault(pointer, "%q is not a step id: a lower-case letter, then up to 62 of a-z, 0-9 and _", st.ID)
		case slices.Contains(reserved, st.ID):
			c.fault(pointer, "%q is a word of the expression language; call the step something else", st.ID)
		default:
			c.ids = append(c.ids, st.ID)
		}
		c.index[st.ID] = i
	}
}

// step checks one step and compiles its expressions.
func (c *checker) step(i int) {
	st, at := c.nodes[i].formStep, c.nodes[i].at
	c.titled(at+"/title", st.Title)
	if !slices.Contains([]Kind{Call, Action, Gate, Ask, Set, Sleep, Fork}, st.Kind) {
		if st.Kind != "" {
			c.fault(at, "there is no step kind %q", st.Kind)
		}
		c.steps = append(c.steps, &Step{ID: st.ID, Path: c.path(i), Index: c.nodes[i].pos})
		return
	}
	c.tool(st, at)
	c.limits(st, at)
	c.rules(i, st, at)
	c.guards(i, st, at)
	c.asks(st, at)
	c.branches(st, at)
	c.steps = append(c.steps, c.compile(i, st, at))
}

func (c *checker) limits(st *formStep, at string) {
	c.bounded(at+"/timeout", "timeout", st.Timeout, st.Timeout != 0 || c.marked(at+"/timeout"))
	c.bounded(at+"/fresh_for", "fresh_for", st.FreshFor, st.FreshFor != 0 || c.marked(at+"/fresh_for"))
	r := st.Retry
	if r == nil {
		return
	}
	if r.MaxAttempts < 1 || r.MaxAttempts > attemptsMax {
		c.fault(at+"/retry/max_attempts", "max_attempts is from 1 (try once) to %d, not %d", attemptsMax, r.MaxAttempts)
	}
	c.bounded(at+"/retry/base", "base", r.Base, true)
	c.bounded(at+"/retry/max_delay", "max_delay", r.MaxDelay, true)
	c.bounded(at+"/retry/budget", "budget", r.Budget, true)
	if r.MaxDelay < r.Base {
		c.fault(at+"/retry/max_delay", "max_delay %s is shorter than base %s", micros(r.MaxDelay), micros(r.Base))
	}
}

func (c *checker) bounded(pointer, key string, us int64, given bool) {
	if d := time.Duration(us) * time.Microsecond; given && (us < time.Millisecond.Microseconds() || us > durationMax.Microseconds()) {
		c.fault(pointer, "%s is from 1ms to %dd, not %s", key, durationMax/(24*time.Hour), d)
	}
}

// migrations checks what a migrate entry says without the older versions.
func (c *checker) migrations() {
	if len(c.form.Migrate) > migrationsMax {
		c.fault("/migrate", "a workflow has at most %d migrations", migrationsMax)
	}
	from := map[int]bool{}
	for i, m := range c.form.Migrate {
		at := fmt.Sprintf("/migrate/%d", i)
		if c.present(at+"/from") && (m.From < 1 || m.From >= c.form.Version) {
			c.fault(at+"/from", "from is an older version, from 1 to %d, not %d", c.form.Version-1, m.From)
		}
		if from[m.From] {
			c.fault(at+"/from", "version %d has two migrations", m.From)
		}
		from[m.From] = true
		c.renamed(m, at+"/rename_steps")
	}
}

func (c *checker) renamed(m Migration, at string) {
	taken := map[string]string{}
	for _, old := range sortedKeys(m.RenameSteps) {
		id := m.RenameSteps[old]
		if !idPattern.MatchString(old) {
			c.fault(at+"/"+old, "%q is not a step id", old)
		}
		if _, ok := c.index[id]; !ok {
			c.fault(at+"/"+old, "there is no step %q%s", id, near(id, c.ids))
		}
		if other, ok := taken[id]; ok {
			c.fault(at+"/"+old, "%s and %s cannot both become %s", other, old, id)
		}
		taken[id] = old
	}
}

// near is the hint of the nearest known name, or nothing.
func near(word string, known []string) string {
	if n := strictyaml.Nearest(word, known); n != "" {
		return fmt.Sprintf("; did you mean %s?", n)
	}
	if len(known) > 0 && len(known) <= 12 {
		return "; there is " + strings.Join(known, ", ")
	}
	return ""
}
