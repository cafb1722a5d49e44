// Package workflow is the definition language and the planner: strict YAML
// becomes a typed, digested form with every fault reported at its line, and a
// pure fold over a run's events says what the run has to do next.
//
// It guarantees that a workflow's digest depends on its meaning alone; that
// [Workflow.Apply] accepts only events which the situation allows; that loops
// are bounded; and that the same events, outputs and instant always give the
// same tasks. Steps are known by path, and several may be open at once.
//
// It must not know a clock, a database, a network, a person or a tool's
// transport: what happened comes in as events, what to do goes out as tasks.
package workflow
