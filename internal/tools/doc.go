// Package tools is what the engine can call: the definition of a tool (strict
// YAML, checked as a whole, digested) and the transports http, exec, file
// and smtp that carry one call out.
//
// It guarantees that a definition's digest depends on its meaning alone; that
// [Tool.Freeze] resolves everything but secrets
// and sealed values, so that what is approved are
// the bytes that are sent; that a write is tried once per [World.Send] and
// never again by itself; and that an answer which proves nothing is
// [Unknown], never a guess. Failure before the first byte left is [NotDone].
//
// It must not know runs, approvals, people, a database or where secrets are
// kept. It logs neither bodies nor secrets.
package tools
