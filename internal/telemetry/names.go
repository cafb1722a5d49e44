package telemetry

import (
	"slices"
	"sync"

	"countersign/internal/workflow"
)

// namesMax bounds the steps, and the tools, that have series of their own
// since the start: a workflow that is installed again and again under new
// names must not fill the memory.
const namesMax = 2000

// other stands for names beyond namesMax, and for unknown words.
const other = "other"

// names bounds the labels that come from definitions.
type names struct {
	mu    sync.Mutex // protects what follows
	steps map[[2]string]bool
	tools map[string]bool
}

func newNames() *names {
	return &names{steps: map[[2]string]bool{}, tools: map[string]bool{}}
}

// of returns the workflow and step to count under.
func (n *names) of(workflow, step string) (string, string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !known(n.steps, [2]string{workflow, step}) {
		return other, other
	}
	return workflow, step
}

func (n *names) tool(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !known(n.tools, name) {
		return other
	}
	return name
}

func known[K comparable](m map[K]bool, k K) bool {
	if !m[k] && len(m) < namesMax {
		m[k] = true
	}
	return m[k]
}

// classOf is a class of failures, whatever a target said.
func classOf(class string) string {
	if class == "" || slices.Contains(workflow.Classes, class) {
		return class
	}
	return other
}
