package workflow

import (
	"encoding/json"
	"time"
)

// formType names the compiled form; it changes when the form's meaning does.
const formType = "countersign.workflow/1"

// form is the compiled form: everything a run needs, defaults resolved, and
// nothing of how it was written. Fields that later kinds of steps bring must
// be omitted when unused, so that the digests of today stay what they are.
type form struct {
	Type      string      `json:"type"`
	Format    int         `json:"format"`
	Workflow  string      `json:"workflow"`
	Version   int         `json:"version"`
	Title     string      `json:"title"`
	Input     any         `json:"input"`              // JSON Schema
	Sensitive []string    `json:"sensitive,omitzero"` // JSON Pointers into the input
	Steps     []formStep  `json:"steps"`
	Output    any         `json:"output,omitzero"` // template
	Migrate   []Migration `json:"migrate,omitzero"`
}

// formStep is one step of the compiled form. Durations are microseconds.
type formStep struct {
	ID       string   `json:"id"`
	Kind     Kind     `json:"kind"`
	Title    string   `json:"title"`
	When     string   `json:"when,omitzero"`
	Tool     string   `json:"tool,omitzero"`
	With     any      `json:"with,omitzero"`     // call, action: template of the parameters
	Key      string   `json:"key,omitzero"`      // action
	Reason   string   `json:"reason,omitzero"`   // action
	Document any      `json:"document,omitzero"` // approve
	Heading  string   `json:"heading,omitzero"`  // approve: its title, a template
	Guards   []string `json:"guards,omitzero"`   // approve
	Set      any      `json:"set,omitzero"`
	Sleep    string   `json:"sleep,omitzero"` // duration, or an expression that gives one

	Question     string   `json:"question,omitzero"`         // ask: a template
	Form         any      `json:"form,omitzero"`             // ask: JSON Schema
	Who          []string `json:"who,omitzero"`              // ask: roles
	Sensitive    []string `json:"sensitive,omitzero"`        // ask: JSON Pointers into the answer
	AnswerWithin int64    `json:"answer_within_us,omitzero"` // ask

	Branches []formBranch `json:"branches,omitzero"` // parallel

	Timeout  int64           `json:"timeout_us,omitzero"`
	FreshFor int64           `json:"fresh_for_us,omitzero"`
	Retry    *formRetry      `json:"retry,omitzero"`
	Then     Rule            `json:"then"`
	OnReject *Rule           `json:"on_reject,omitzero"`
	OnExpire *Rule           `json:"on_expire,omitzero"`
	OnError  map[string]Rule `json:"on_error"`
}

// formBranch is one branch of a parallel step.
type formBranch struct {
	Name  string     `json:"name"`
	Steps []formStep `json:"steps"`
}

type formRetry struct {
	MaxAttempts int   `json:"max_attempts"`
	Base        int64 `json:"base_us"`
	MaxDelay    int64 `json:"max_delay_us"`
	Budget      int64 `json:"budget_us"`
}

// Migration says how an open run of an older version continues in this one.
// It is checked and stored here; executing it is the engine's.
type Migration struct {
	From        int               `json:"from"`
	RenameSteps map[string]string `json:"rename_steps,omitzero"`
}

// Limits of a definition. Each is named in the message that refuses.
const (
	sizeBytesMax   = 1 << 20 // of the YAML text
	stepsMax       = 1000    // in all scopes
	branchesMax    = 20      // of one parallel step
	depthMax       = 3       // parallel steps in each other, the outermost included
	titleRunesMax  = 200
	textBytesMax   = 16 << 10 // of one template as written, and of a reason, title or key as evaluated
	keyBytesMax    = 200      // of an evaluated business key
	versionMax     = 1_000_000_000
	passesMax      = 100
	attemptsMax    = 100
	guardsMax      = 100
	rolesMax       = 20      // that may answer a question
	questionMax    = 2 << 10 // bytes of an evaluated question
	migrationsMax  = 100
	durationMax    = 366 * 24 * time.Hour
	documentMax    = 256 << 10 // bytes of an approve step's evaluated document
	defaultRetries = 3
)

// defaultRetry is the retry rule of a step that does not say: modest, because
// a model's answer is expensive to ask for again.
var defaultRetry = RetryRule{MaxAttempts: defaultRetries, Base: time.Second, MaxDelay: 30 * time.Second, Budget: 5 * time.Minute}

func (r RetryRule) form() *formRetry {
	return &formRetry{MaxAttempts: r.MaxAttempts, Base: r.Base.Microseconds(), MaxDelay: r.MaxDelay.Microseconds(), Budget: r.Budget.Microseconds()}
}

func (f *formRetry) rule() RetryRule {
	if f == nil {
		return RetryRule{}
	}
	return RetryRule{MaxAttempts: f.MaxAttempts, Base: micros(f.Base), MaxDelay: micros(f.MaxDelay), Budget: micros(f.Budget)}
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// mustJSON encodes our own small structs, which cannot fail.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("workflow: encode: " + err.Error())
	}
	return b
}
