// Package e2e walks the console as people do: the real binary, a real
// browser, the demo's world.
//
// It guarantees that a page which writes an error to the browser's console
// fails its journey. It must not know how anything is done inside.
package e2e
