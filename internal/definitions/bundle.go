// Package definitions reads the workflows, tools and policies of a folder and
// keeps every version that was ever in force, immutable and by digest.
//
// It guarantees that a bundle is taken whole or not at all, that every fault
// of every file is reported at once with its place, and that a version number
// never means two contents. It must not know runs, requests, people or HTTP.
package definitions

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"countersign/internal/approvals"
	"countersign/internal/strictyaml"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// Limits of a definitions folder.
const (
	filesMax     = 500     // files per kind
	fileBytesMax = 1 << 20 // bytes of one file
)

// Kind is what a definition defines.
type Kind string

// The kinds, named as in the definition table.
const (
	KindWorkflow Kind = "workflow"
	KindTool     Kind = "tool"
	KindPolicy   Kind = "policy"
)

// Folders says where each kind is read from. A nil folder holds nothing.
type Folders struct {
	Workflows, Tools, Policies fs.FS
}

// Below returns the folders workflows, tools and policies of root.
func Below(root fs.FS) Folders {
	sub := func(name string) fs.FS {
		f, err := fs.Sub(root, name)
		if err != nil {
			return nil
		}
		return f
	}
	return Folders{Workflows: sub("workflows"), Tools: sub("tools"), Policies: sub("policies")}
}

// Bundle is one consistent set of compiled definitions.
type Bundle struct {
	Workflows []*workflow.Workflow
	Tools     []*tools.Tool
	Policies  []*approvals.Policy
	Warnings  []string // worth a look, not wrong

	sources map[string]source // by digest
}

type source struct{ file, text string }

// Read compiles everything in the folders. The error is a
// strictyaml.Problems that lists every fault of every file with its place;
// nothing is returned with it.
func Read(f Folders) (*Bundle, error) {
	b := &Bundle{sources: map[string]source{}}
	var faults strictyaml.Problems
	var broken []string
	each(f.Tools, "tools", &faults, func(file string, src []byte) error {
		t, err := tools.Compile(file, src)
		if err != nil {
			broken = append(broken, nameOf(file, src)...)
		}
		if err == nil {
			b.Tools = append(b.Tools, t)
			b.sources[t.Digest] = source{file, string(src)}
		}
		return err
	})
	catalog := known{b.catalog(), broken}
	each(f.Workflows, "workflows", &faults, func(file string, src []byte) error {
		w, err := workflow.Compile(file, src, catalog)
		if err == nil {
			b.Workflows = append(b.Workflows, w)
			b.sources[w.Digest] = source{file, string(src)}
			for _, warning := range w.Warnings {
				b.Warnings = append(b.Warnings, warning.Pos.String()+": "+warning.Message)
			}
		}
		return err
	})
	each(f.Policies, "policies", &faults, func(file string, src []byte) error {
		p, err := approvals.CompilePolicy(file, src)
		if err == nil {
			b.Policies = append(b.Policies, p)
			if p.Name != policyName {
				b.Warnings = append(b.Warnings, fmt.Sprintf("%s: the policy %q is never asked; the one in force is named %q", file, p.Name, policyName))
			}
			b.sources[p.Digest] = source{file, string(src)}
		}
		return err
	})
	b.checkTwins(&faults)
	b.doubtPolicies()
	if len(faults) > 0 {
		return nil, faults
	}
	return b, nil
}

// each calls compile for every YAML file of the folder, in name order, and
// gathers the faults. A folder that does not exist holds nothing.
func each(folder fs.FS, kind string, faults *strictyaml.Problems, compile func(file string, src []byte) error) {
	if folder == nil {
		return
	}
	names, err := fs.Glob(folder, "*.y*ml")
	if err != nil {
		fault(faults, kind, err.Error())
		return
	}
	if len(names) > filesMax {
		fault(faults, kind, fmt.Sprintf("holds %d definitions; at most %d are read", len(names), filesMax))
		return
	}
	slices.Sort(names)
	for _, name := range names {
		file := path.Join(kind, name)
		src, err := readFile(folder, name)
		if err == nil {
			err = compile(file, src)
		}
		var located strictyaml.Problems
		switch {
		case err == nil:
		case errors.As(err, &located):
			*faults = append(*faults, located...)
		default:
			fault(faults, file, err.Error())
		}
	}
}

func readFile(folder fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > fileBytesMax {
		return nil, fmt.Errorf("is %d bytes; a definition has at most %d", info.Size(), fileBytesMax)
	}
	return fs.ReadFile(folder, name)
}

func fault(faults *strictyaml.Problems, file, text string) {
	*faults = append(*faults, strictyaml.Problem{Pos: strictyaml.Pos{File: file, Line: 1, Col: 1}, Message: text})
}

// checkTwins refuses two files that define the same version of one name.
func (b *Bundle) checkTwins(faults *strictyaml.Problems) {
	seen := map[string]string{}
	for _, d := range b.all() {
		key := fmt.Sprintf("%s %s version %d", d.kind, d.name, d.version)
		file := b.sources[d.digest].file
		if first, ok := seen[key]; ok {
			fault(faults, file, fmt.Sprintf("defines %s, which %s defines too; give one of them another name or version", key, first))
			continue
		}
		seen[key] = file
	}
}

// row is what every kind of definition has in common.
type row struct {
	kind     Kind
	name     string
	version  int
	digest   string
	compiled []byte
}

func (b *Bundle) all() []row {
	var rows []row
	for _, t := range b.Tools {
		rows = append(rows, row{KindTool, t.Name, t.Version, t.Digest, t.Compiled})
	}
	for _, w := range b.Workflows {
		rows = append(rows, row{KindWorkflow, w.Name, w.Version, w.Digest, w.Compiled})
	}
	for _, p := range b.Policies {
		rows = append(rows, row{KindPolicy, p.Name, p.Version, p.Digest, p.Compiled})
	}
	return rows
}

// catalog is what workflows may call: for each tool name its highest version.
func (b *Bundle) catalog() Catalog {
	c := Catalog{}
	for _, t := range b.Tools {
		if have, ok := c[t.Name]; !ok || have.Version < t.Version {
			c[t.Name] = t
		}
	}
	return c
}

// Catalog is the tools that workflows may name, by name.
type Catalog map[string]*tools.Tool

// Tool tells the workflow compiler about one tool.
func (c Catalog) Tool(name string) (workflow.ToolInfo, bool) {
	t, ok := c[name]
	if !ok {
		return workflow.ToolInfo{}, false
	}
	return workflow.ToolInfo{Name: t.Name, Version: t.Version, Digest: t.Digest, Write: t.Write, Params: t.Params(), Risk: t.Risk}, true
}

// ToolNames lists the tools in name order.
func (c Catalog) ToolNames() []string {
	names := make([]string, 0, len(c))
	for n := range c {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
