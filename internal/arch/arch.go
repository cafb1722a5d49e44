// Package arch holds no code of the product, only tests of its shape: who may
// import whom, that every package says what it is for, and that dependencies
// keep the versions they must have.
//
// It guarantees that a new edge between packages is a decision somebody wrote
// down here. It must not be imported.
package arch
