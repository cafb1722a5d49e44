// Package enginetest holds what the engine's tests, and the tests of whoever
// gives it a gate, are made of: a gate that keeps its requests in a table and
// decides on demand, a recorder, a library of definitions, a world whose
// answers a test writes, a target that keeps a durable ledger of its own, and
// the suites: what every engine on every store must do, and what a kill in
// every window must leave behind.
//
// It guarantees that its oracle, the target's ledger, is durable before the
// engine hears of an effect. Nothing of the product may import it.
package enginetest
