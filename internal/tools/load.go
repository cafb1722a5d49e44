package tools

import (
	"bytes"
	"encoding/json"
	"fmt"

	"countersign/internal/canon"
	"countersign/internal/problem"
)

// compiledLimits bounds a compiled form; a definition is bounded by strictyaml
// before it gets this far.
var compiledLimits = canon.Limits{Bytes: 4 << 20, Depth: 200, Keys: 100_000}

// Load gives a tool back from its compiled form, with the same digest.
func Load(compiled json.RawMessage) (*Tool, error) {
	var s spec
	if err := canon.Decode(compiled, compiledLimits, &s); err != nil {
		return nil, fmt.Errorf("load tool: %w", err)
	}
	if s.Type != compiledType {
		return nil, problem.New(problem.Invalid, "tool_type", "The compiled tool has the type %q; this console reads %s.", s.Type, compiledType)
	}
	p := problem.New(problem.Invalid, "tool_invalid", "The compiled tool is not valid.")
	t := build(s, func(pointer string, _ int, format string, args ...any) { p = p.At(pointer, format, args...) }, false)
	if len(p.Fields) > 0 {
		return nil, p
	}
	t, err := t.seal()
	if err == nil && !bytes.Equal(t.Compiled, compiled) {
		return nil, problem.New(problem.Invalid, "tool_invalid", "The compiled tool is not in its canonical form.")
	}
	return t, err
}
