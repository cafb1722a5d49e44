package approvals

import (
	"fmt"
	"strings"
)

// column is one live copy of something the subject says.
type column struct {
	name  string
	words string // for people
	value any    // string, int64 or nil
}

// columns are what the request's row must hold for the subject.
func (s Subject) columns(digest string) ([]column, error) {
	text, err := lawText(s.law())
	if err != nil {
		return nil, err
	}
	i := Item{ID: s.ID, Kind: s.Kind, Revision: s.Revision, Digest: digest, ParamsHash: s.ParamsHash, Run: s.Run, Path: s.Path, Pass: s.Pass,
		Action: s.Action, Workflow: s.Plan.Workflow, Tool: s.Tool, ToolVersion: s.ToolVersion, ToolDigest: s.ToolDigest, Risk: s.Risk,
		Target: s.Target, Title: s.Title, Summary: s.Summary, Key: s.Key, Initiator: s.Initiator, InitiatorName: s.InitiatorName,
		OnBehalfOf: s.OnBehalfOf, Policy: s.Policy.Name, PolicyVersion: s.Policy.Version, PolicyDigest: s.Policy.Digest, Rule: s.Policy.Rule,
		RunVersion: s.RunVersion, ExecuteWithin: micros(s.ExecuteWithinUs), params: s.Params, requestDigest: s.RequestDigest}
	return i.columns(string(text)), nil
}

// columns lists the live copies in the order of the table.
func (i Item) columns(law string) []column {
	var params any
	if i.params != nil {
		params = string(i.params)
	}
	return []column{
		{"kind", "the kind", i.Kind},
		{"revision", "the revision", int64(i.Revision)},
		{"digest", "the digest", i.Digest},
		{"run", "the run", string(i.Run)},
		{"path", "the step", i.Path},
		{"pass", "the pass", int64(i.Pass)},
		{"action", "the action", string(i.Action)},
		{"workflow", "the workflow", i.Workflow},
		{"tool", "the tool", i.Tool},
		{"tool_version", "the tool's version", int64(i.ToolVersion)},
		{"tool_digest", "the tool's digest", i.ToolDigest},
		{"risk", "the risk", i.Risk},
		{"target", "the target", i.Target},
		{"title", "the title", i.Title},
		{"summary", "the summary", i.Summary},
		{"params", "the parameters", params},
		{"params_hash", "the hash of the parameters", i.ParamsHash},
		{"request_digest", "the digest of the frozen request", i.requestDigest},
		{"idempotency_key", "the idempotency key", i.Key},
		{"initiator", "the initiator", string(i.Initiator)},
		{"initiator_name", "the initiator's name", i.InitiatorName},
		{"on_behalf_of", "on whose behalf", i.OnBehalfOf},
		{"law", "who may decide", law},
		{"policy", "the policy", i.Policy},
		{"policy_version", "the policy's version", int64(i.PolicyVersion)},
		{"policy_digest", "the policy's digest", i.PolicyDigest},
		{"rule", "the rule", i.Rule},
		{"run_version", "the run's version", i.RunVersion},
		{"execute_within", "the time to execute", i.ExecuteWithin.Microseconds()},
	}
}

// assignment writes "a = $from, b = $from+1, …" for the columns.
func assignment(all []column, from int) string {
	parts := make([]string, len(all))
	for i, c := range all {
		parts[i] = fmt.Sprintf("%s = $%d", c.name, from+i)
	}
	return strings.Join(parts, ", ")
}

func names(all []column) string {
	parts := make([]string, len(all))
	for i, c := range all {
		parts[i] = c.name
	}
	return strings.Join(parts, ", ")
}

func places(n, from int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf("$%d", from+i)
	}
	return strings.Join(parts, ", ")
}

func values(all []column) []any {
	vs := make([]any, len(all))
	for i, c := range all {
		vs[i] = c.value
	}
	return vs
}

// The statements that write the columns; their texts depend on nothing else.
var (
	blank         = Item{}.columns("")
	sqlNewRequest = `INSERT INTO request (` + names(blank) + `, tenant, id, status, votes, dead_end, decide_by, execute_by,
	outcome, closed_by, closed_by_name, closed_why, closed_at, created_at, updated_at)
	VALUES (` + places(len(blank), 12) + `, $1, $2, $3, 0, $4, $5, $6, '', $7, $8, $9, $10, $11, $11)`
	sqlNextRevision = `UPDATE request SET ` + assignment(blank, 14) + `, status = $3, votes = votes + 1, dead_end = $4, decide_by = $5, execute_by = $6,
	started_at = NULL, outcome = '', outcome_at = NULL, closed_by = $7, closed_by_name = $8, closed_why = $9, closed_at = $10, updated_at = $11
	WHERE tenant = $1 AND id = $2 AND digest = $12 AND votes = $13 AND status IN ('pending', 'approved', 'allowed')`
)
