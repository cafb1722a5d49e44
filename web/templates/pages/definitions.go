package pages

import (
	"countersign/web/templates/layout"
	"countersign/web/templates/parts"
)

// DefinitionsView lists what is in force.
type DefinitionsView struct {
	Page     layout.Page
	Groups   []DefinitionGroup // workflows, tools, policies
	Problems []string          // of the last load, "file:line:col: message"; untrusted
	Explain  string            // URL of the explain form
}

// DefinitionGroup is one kind.
type DefinitionGroup struct {
	Title string
	Rows  []DefinitionRow
	Empty string
}

// DefinitionRow is one definition in force.
type DefinitionRow struct {
	Name    string
	Version int
	URL     string
	Title   string // untrusted
	Risk    string // tools only
	Effect  string // "reads", "writes"; tools only
	Digest  string
	Since   parts.Time
	Problem string // untrusted
}

// DefinitionView is one version of a definition.
type DefinitionView struct {
	Page     layout.Page
	Back     parts.Link
	Kind     string // workflow, tool, policy
	Name     string
	Version  int
	Title    string // untrusted
	Facts    []parts.Fact
	Versions []parts.Link // the one that is shown has no URL
	Map      *parts.Map   // workflows
	Rules    []PolicyRule // policies
	Source   parts.JSON   // as it was written
	Compiled *parts.JSON  // as it is digested
	Start    string       // URL that starts a run of it; may be empty
}

// PolicyRule is one rule, in order.
type PolicyRule struct {
	Name   string
	When   string // the condition; empty: always
	Effect string // allow, deny, approve
	Text   string // "2 of finance, within 24 h; starts within 1 h"
}

// ExplainView answers "who would have to approve this?". POST Action: tool,
// params (JSON), workflow, on_behalf_of.
type ExplainView struct {
	Page   layout.Page
	Back   parts.Link
	Action string
	Fields []parts.Field
	Error  *parts.Notice
	Answer *ExplainAnswer
}

// ExplainAnswer is the policy's verdict.
type ExplainAnswer struct {
	Verdict  parts.Status // allow, deny, approve
	Sentence string       // what the tool says it would do; untrusted
	Policy   Policy
}
