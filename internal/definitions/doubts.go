package definitions

import (
	"fmt"
	"slices"

	"countersign/internal/approvals"
	"countersign/internal/nearest"
	"countersign/internal/strictyaml"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// known is the catalog while files are read: a tool whose own file has faults
// is known by its name, so that nobody is told that it does not exist.
type known struct {
	Catalog
	broken []string
}

// Tool tells the workflow compiler about one tool.
func (k known) Tool(name string) (workflow.ToolInfo, bool) {
	if slices.Contains(k.broken, name) {
		return workflow.ToolInfo{Name: name, Broken: true}, true
	}
	return k.Catalog.Tool(name)
}

// nameOf reads the name out of a tool's file that could not be compiled.
func nameOf(file string, src []byte) []string {
	root, err := strictyaml.Parse(file, src)
	if err != nil || root.Kind != strictyaml.KindMap {
		return nil
	}
	var ignored strictyaml.Problems
	if name := root.Map(&ignored).Get("tool"); name != nil {
		return []string{name.String(&ignored)}
	}
	return nil
}

// doubtPolicies warns of rules that compare a variable with what it can never
// be: a deny rule with a misspelled tool denies nothing.
func (b *Bundle) doubtPolicies() {
	values := map[string][]string{"tool": b.catalog().ToolNames(), "workflow": b.workflowNames(), "risk": tools.Risks, "weekday": approvals.Weekdays}
	for _, p := range b.Policies {
		for _, variable := range []string{"tool", "workflow", "risk", "weekday"} {
			known := values[variable]
			for _, m := range p.Compared(variable) {
				if len(known) > 0 && m.Text != "" && !slices.Contains(known, m.Text) {
					b.Warnings = append(b.Warnings, fmt.Sprintf("%s: the rule %q compares %s with %q, and there is no such %s%s",
						b.sources[p.Digest].file, m.Rule, variable, m.Text, variable, meant(m.Text, known)))
				}
			}
		}
	}
}

func meant(word string, known []string) string {
	if near := nearest.Word(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

func (b *Bundle) workflowNames() (names []string) {
	for _, w := range b.Workflows {
		names = append(names, w.Name)
	}
	return names
}
