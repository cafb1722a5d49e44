// Package approvals holds what people decide: requests and their revisions,
// one-time decisions, the policies that say who must decide, and the subject
// document that a decision is about.
//
// It guarantees that a revision's subject never changes, that a decision
// belongs to exactly one digest and counts one person once, that nothing but a
// full set of votes or a policy's own word ever means approved, and that what
// is stored can be compared with what was approved before anything is sent.
// It must not know the engine, the audit log, sign-in, HTTP or the network.
//
// The rules of DESIGN sections 6 and 7 are pure functions (next, standing,
// match, compareParams, satisfied); [Book] is their SQL.
//
// Deadlines: the instant itself is over. A decision at decide-by and a start
// at execute-by come too late.
package approvals
