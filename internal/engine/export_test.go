package engine

import "countersign/internal/workflow"

// StandStill stops the renewals of every lease of the engine, as a process
// that is not scheduled does.
func StandStill(e *Engine) { e.noRenew.Store(true) }

// Ends reports whether an event ends a pass of a step.
func Ends(kind workflow.EventKind) bool { return ends[kind] != "" }

// LeavesOpen reports whether a step is open after an event.
func LeavesOpen(kind workflow.EventKind) bool { return opens[kind] }

// VitalsQueries are what a scrape reads.
var VitalsQueries = []string{sqlCountRuns, sqlCountUnknown}
