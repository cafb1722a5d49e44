// Package engine drives runs: it does what the planner says, records every
// step of it as a checkpoint, and changes the world at most once per action,
// through a ledger.
//
// It guarantees that one driver at most holds a run (a lease, with a fence in
// every write); that a step's status and output commit together; that an
// effect's intent is durable before its first byte leaves, and that an effect
// whose outcome was not recorded is `unknown` until somebody or something has
// found out; that a run never continues on a record that was altered, nor on
// a definition it was not started with; and that a run which cannot go on
// says why and what to do. DESIGN.md beside this file has the tables, the
// transactions and the windows between them.
//
// It must not know approvals, policies, the audit log, people's rights, HTTP
// or a page: a [Gate] says what may be done, a [Recorder] keeps the record.
package engine
