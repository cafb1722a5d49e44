package workflow

import (
	"fmt"

	"countersign/internal/strictyaml"
)

// branches reads {NAME: [steps], NAME: [steps]}, in the order of the file.
func (p *parser) branches(n *strictyaml.Node, at string, depth int) []formBranch {
	if n == nil {
		return nil
	}
	if depth > depthMax {
		p.fault(n, "parallel steps lie at most %d deep in each other; this one is %d deep", depthMax, depth)
		return nil
	}
	if n.Kind != strictyaml.KindMap {
		p.fault(n, "parallel is a map of branches, each a list of steps: {left: [...], right: [...]}")
		return nil
	}
	m := p.mark(at+"/branches", n).Map(&p.problems)
	var all []formBranch
	for i, name := range m.Keys() {
		pointer := fmt.Sprintf("%s/branches/%d", at, i)
		p.mark(pointer, m.Get(name))
		all = append(all, formBranch{Name: name, Steps: p.steps(m.Get(name), pointer+"/steps", depth)})
	}
	return all
}
