package engine

// StandStill stops the renewals of every lease of the engine, as a process
// that is not scheduled does.
func StandStill(e *Engine) { e.noRenew.Store(true) }
