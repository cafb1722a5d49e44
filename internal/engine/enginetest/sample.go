package enginetest

// Definitions that the suites use. The tools name no real target: with a
// Script as the world only their declarations matter.
const (
	ToolRead = `
format: 1
tool: docs.read
version: 1
effect: read
risk: low
params: {type: object, additionalProperties: false, properties: {q: {type: string}}}
summary: "Read"
target: "docs"
http: {method: GET, url: "${config.target}/read"}
`
	toolWriteHead = `
version: 1
semantic_version: 1
effect: write
risk: medium
params: {type: object, additionalProperties: false, required: [text], properties: {text: {type: string, maxLength: 100}}}
summary: "Write ${params.text}"
target: "page"
`
	writeKeyed = `
http:
  method: POST
  url: "${config.target}/effects"` + writeRest
	writeUnkeyed = `
http:
  method: POST
  url: "${config.target}/unkeyed"` + writeRest
	writeRest = `
  body: {text: "${params.text}"}
  timeout: 300ms
  ok: "status == 201"
  not_done: "status == 429 || status == 503"
  refused: "status in [400, 409, 422]"
`
	declareKey   = `idempotency: {header: Idempotency-Key, ttl: 1h}` + "\n"
	declareQuery = `reconcile:
  http: {method: GET, url: "${config.target}/effects?key=${idempotency_key}"}
  happened: "size(body.items) == 1"
  did_not: "size(body.items) == 0"
  settle: 50ms
  returns: "${body.items[0]}"
`
	// ToolKeyQuery can be asked and sent again.
	ToolKeyQuery = "format: 1\ntool: write.keyquery" + toolWriteHead + writeKeyed + declareKey + declareQuery
	// ToolKey can only be sent again.
	ToolKey = "format: 1\ntool: write.key" + toolWriteHead + writeKeyed + declareKey
	// ToolQuery can only be asked.
	ToolQuery = "format: 1\ntool: write.query" + toolWriteHead + writeUnkeyed + declareQuery
	// ToolPlain can be neither: an unknown outcome needs a person.
	ToolPlain = "format: 1\ntool: write.plain" + toolWriteHead + writeUnkeyed
	// ToolPinned has a precondition with a pin.
	ToolPinned = "format: 1\ntool: write.pinned" + toolWriteHead + writeUnkeyed + declareQuery + `
precondition:
  http: {method: GET, url: "${config.target}/state"}
  check: "body.open"
  pin: "body.version"
`
	// ToolExec runs a program that appends a line to a ledger file.
	ToolExec = "format: 1\ntool: write.exec" + toolWriteHead + `
exec:
  argv: ["${config.program}", "-effect=${params.text}", "-ledger=${config.ledger}"]
  timeout: 10s
`
	// ToolFile writes a page.
	ToolFile = "format: 1\ntool: write.file" + toolWriteHead + `
file: {root: "${config.root}", path: "page.md", content: "${params.text}"}
`
)

// AllTools are all of them.
var AllTools = []string{ToolRead, ToolKeyQuery, ToolKey, ToolQuery, ToolPlain, ToolPinned, ToolExec, ToolFile}

// AskThenWrite is a workflow of a question, and an action with the tool that is
// built from its answer.
func AskThenWrite(tool string) string {
	return `
format: 1
workflow: ask-then-write
version: 1
title: Ask, then write
steps:
  - id: ask
    ask: "What should be written?"
    form: {type: object, required: [text], additionalProperties: false, properties: {text: {type: string, maxLength: 50}, loud: {type: boolean, default: false}}}
    who: {roles: [editor, operator]}
    answer_within: 72h
  - id: write
    action: ` + tool + `
    with: {text: "${steps.ask.output.text}"}
output: "${steps.ask.output}"
`
}

// TwoBranches is a workflow of two branches, each an action with one of the
// tools that is built from a read, and a set that names both.
func TwoBranches(left, right string) string {
	return `
format: 1
workflow: two-branches
version: 1
title: Two branches
steps:
  - id: both
    parallel:
      left:
        - {id: look, call: docs.read, with: {q: "l"}, retry: {max_attempts: 3, base: 10ms, max_delay: 50ms, budget: 1m}}
        - id: write
          action: ` + left + `
          with: {text: "${steps.look.output.text} left"}
          retry: {max_attempts: 4, base: 10ms, max_delay: 50ms, budget: 10m}
      right:
        - {id: seek, call: docs.read, with: {q: "r"}, retry: {max_attempts: 3, base: 10ms, max_delay: 50ms, budget: 1m}}
        - id: send
          action: ` + right + `
          with: {text: "${steps.seek.output.text} right"}
          retry: {max_attempts: 4, base: 10ms, max_delay: 50ms, budget: 10m}
  - id: sum
    set: {left: "${steps.both.output.left}", right: "${steps.both.output.right}"}
output: "${steps.sum.output}"
`
}

// ReadThenWrite is a workflow of a read, an action with the tool, and a set.
func ReadThenWrite(tool string) string {
	return `
format: 1
workflow: read-then-write
version: 1
title: Read, then write
input: {type: object, additionalProperties: false, properties: {text: {type: string}}}
steps:
  - id: look
    call: docs.read
    with: {q: "x"}
    retry: {max_attempts: 3, base: 10ms, max_delay: 50ms, budget: 1m}
  - id: write
    action: ` + tool + `
    with: {text: "${steps.look.output.text}"}
    reason: "because"
    retry: {max_attempts: 4, base: 10ms, max_delay: 50ms, budget: 10m}
  - id: sum
    set: {done: "${steps.write.status}"}
output: "${steps.sum.output}"
`
}
