package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"countersign/internal/canon"
	"countersign/internal/expr"
	"countersign/internal/problem"
	"countersign/internal/schema"
	"countersign/internal/sealed"
	"countersign/internal/strictyaml"
)

// ToolInfo is what a workflow has to know of a tool to name it rightly.
type ToolInfo struct {
	Name    string
	Version int
	Digest  string
	Write   bool           // changes the world
	Params  *schema.Schema // nil: not known, names of parameters are not checked
	Risk    string
	Broken  bool // its own definition has faults: nothing but the name is known
}

// Catalog is the tools in force while a definition is compiled.
type Catalog interface {
	Tool(name string) (ToolInfo, bool)
	ToolNames() []string
}

// Workflow is one compiled workflow version. It is immutable and may be
// shared.
type Workflow struct {
	Name      string
	Version   int
	Title     string
	Digest    string              // of Compiled: "sha256:…"
	Compiled  json.RawMessage     // canonical; what is stored
	Tools     []string            // names used, sorted
	Sensitive []string            // JSON Pointers into the input; "-" is every item of a list
	Migrate   []Migration         // how open runs of older versions continue
	Warnings  strictyaml.Problems // what is allowed but rarely meant; not part of the compiled form

	form       *form
	input      *schema.Schema
	output     *expr.Value
	outputRefs []string // paths that output names
	top        *scope
	steps      []*Step // of all scopes, in the order of the definition
	byPath     map[string]*Step
}

// Compile reads a definition. The error is strictyaml.Problems: every fault
// at once, each with its place.
func Compile(file string, src []byte, cat Catalog) (*Workflow, error) {
	if len(src) > sizeBytesMax {
		return nil, strictyaml.Problems{{Pos: strictyaml.Pos{File: file},
			Message: fmt.Sprintf("the file has %d bytes; a workflow has at most %d", len(src), sizeBytesMax)}}
	}
	root, err := strictyaml.Parse(file, src)
	if err != nil {
		return nil, err
	}
	p := &parser{marks: marks{file: file, node: map[string]*strictyaml.Node{}}}
	f := p.parse(root)
	if cat == nil {
		cat = noTools{}
	}
	c := &checker{form: f, marks: p.marks, catalog: cat, problems: p.problems}
	w := c.build()
	if err := c.problems.Err(); err != nil {
		return nil, err
	}
	if w.Compiled, err = canon.Marshal(f); err != nil {
		return nil, strictyaml.Problems{{Pos: strictyaml.Pos{File: file}, Message: problem.From(err).Error()}}
	}
	w.Digest = canon.Digest(w.Compiled)
	return w, nil
}

type noTools struct{}

func (noTools) Tool(string) (ToolInfo, bool) { return ToolInfo{}, false }
func (noTools) ToolNames() []string          { return nil }

// compiledLimits bound a stored compiled form: the text's own limit, with room
// for the resolved defaults.
var compiledLimits = canon.Limits{Bytes: 4 * sizeBytesMax, Depth: 128, Keys: 200_000}

// Load builds a workflow from its stored compiled form; the digest is that of
// the bytes. A form that is not exactly what Compile writes is an error.
func Load(compiled json.RawMessage) (*Workflow, error) {
	canonical, err := canon.Canonical(compiled, compiledLimits)
	if err != nil {
		return nil, fmt.Errorf("load workflow: %w", err)
	}
	if string(canonical) != string(compiled) {
		return nil, errors.New("load workflow: the compiled form is not canonical")
	}
	var f form
	if err := canon.Decode(compiled, compiledLimits, &f); err != nil {
		return nil, fmt.Errorf("load workflow: %w", err)
	}
	if f.Type != formType {
		return nil, fmt.Errorf("load workflow: the compiled form is %q; this version reads %q", f.Type, formType)
	}
	c := &checker{form: &f, marks: marks{file: f.Workflow}}
	w := c.build()
	if err := c.problems.Err(); err != nil {
		return nil, fmt.Errorf("load workflow: %w", err)
	}
	again, err := canon.Marshal(f)
	if err != nil || string(again) != string(compiled) {
		return nil, errors.New("load workflow: the compiled form is not what this version would write")
	}
	w.Compiled, w.Digest = compiled, canon.Digest(compiled)
	return w, nil
}

// build checks the form and makes the workflow of it. It is of use only when
// c.problems stay empty.
func (c *checker) build() *Workflow {
	c.check()
	f := c.form
	w := &Workflow{Name: f.Workflow, Version: f.Version, Title: f.Title, Sensitive: f.Sensitive, Migrate: f.Migrate,
		form: f, input: c.sensitive(c.schemaOf(f.Input, "/input", "input schema"), "/sensitive", "input", f.Sensitive), top: c.top, steps: c.steps, byPath: make(map[string]*Step, len(c.steps))}
	tools := map[string]bool{}
	for _, step := range c.steps {
		w.byPath[step.Path] = step
		if step.Tool != "" {
			tools[step.Tool] = true
		}
	}
	w.Tools = slices.Sorted(maps.Keys(tools))
	if f.Output != nil {
		if w.output = c.value(len(c.nodes), "/output", f.Output); w.output != nil {
			w.outputRefs = c.paths(w.output.Steps())
		}
	}
	if len(c.problems) == 0 {
		c.ages(w)
	}
	w.Warnings = c.warnings
	return w
}

// PrepareInput applies the defaults, validates, and returns the canonical
// input: what a run is started with and what is hashed. No input is {}.
func (w *Workflow) PrepareInput(v json.RawMessage) (json.RawMessage, error) {
	return prepare(w.input, v, "The input")
}

// prepare applies the schema's defaults, validates, and returns the canonical
// form. what begins the sentence of a fault.
func prepare(s *schema.Schema, v json.RawMessage, what string) (json.RawMessage, error) {
	if len(v) == 0 {
		v = json.RawMessage("{}")
	}
	canonical, err := canon.Canonical(v, canon.DefaultLimits)
	if err != nil {
		return nil, err
	}
	value, err := canon.Value(canonical)
	if err != nil {
		return nil, err
	}
	if at, ok := sealed.Forged(value); ok {
		return nil, problem.New(problem.Invalid, "invalid", "%s does not fit.", what).At(at, "%q is kept for sealed values and cannot be given", sealed.Mark)
	}
	if value, err = s.WithDefaults(value); err != nil {
		return nil, err
	}
	if err := s.Validate(value); err != nil {
		return nil, err
	}
	return canon.Marshal(value)
}

// InputSchema is what the input must fit; forms are made of it.
func (w *Workflow) InputSchema() *schema.Schema { return w.input }

// Step finds the step of a path.
func (w *Workflow) Step(path string) (*Step, bool) {
	step, ok := w.byPath[path]
	return step, ok
}

// StepInfo is what pages show of a step.
type StepInfo struct {
	Path     string
	Kind     Kind
	Title    string
	Tool     string        // call, action
	Optional bool          // has a `when`
	FreshFor time.Duration // 0: for ever
	Guards   []string      // approve: paths of the actions it guards
	Roles    []string      // ask: who may answer
}

// Steps lists the steps in order, for pages.
func (w *Workflow) Steps() []StepInfo {
	infos := make([]StepInfo, len(w.steps))
	for i, st := range w.steps {
		infos[i] = StepInfo{Path: st.Path, Kind: st.Kind, Title: st.Title, Tool: st.Tool,
			Optional: st.Optional(), FreshFor: st.FreshFor, Guards: slices.Clone(st.guards), Roles: slices.Clone(st.Roles)}
	}
	return infos
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
