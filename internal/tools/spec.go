package tools

import (
	"encoding/json"
	"fmt"
	"time"
)

// spec is a definition as plain data with defaults filled in: its canonical
// JSON is the compiled form, and its digest is the tool's.
type spec struct {
	Type            string           `json:"type"` // countersign.tool/1
	Format          int              `json:"format"`
	Tool            string           `json:"tool"`
	Version         int              `json:"version"`
	SemanticVersion int              `json:"semantic_version,omitzero"`
	Title           string           `json:"title,omitzero"`
	Effect          string           `json:"effect"`
	Risk            string           `json:"risk"`
	Params          any              `json:"params"`
	Output          any              `json:"output,omitzero"`
	Returns         any              `json:"returns,omitzero"`
	Summary         string           `json:"summary"`
	Target          string           `json:"target"`
	Impact          string           `json:"impact,omitzero"`
	Reversible      *bool            `json:"reversible,omitzero"`
	Editable        []string         `json:"editable,omitzero"`
	Sensitive       []string         `json:"sensitive,omitzero"`
	SensitiveOutput []string         `json:"sensitive_output,omitzero"`
	HTTP            *httpSpec        `json:"http,omitzero"`
	Exec            *execSpec        `json:"exec,omitzero"`
	File            *fileSpec        `json:"file,omitzero"`
	SMTP            *smtpSpec        `json:"smtp,omitzero"`
	Idempotency     *idempotencySpec `json:"idempotency,omitzero"`
	Reconcile       *reconcileSpec   `json:"reconcile,omitzero"`
	Precondition    *readingSpec     `json:"precondition,omitzero"`
	Preview         *readingSpec     `json:"preview,omitzero"`
	Compensate      *compensateSpec  `json:"compensate,omitzero"`
}

// judgeSpec are the conditions that say what an answer proves.
type judgeSpec struct {
	OK      string            `json:"ok,omitzero"`
	NotDone string            `json:"not_done,omitzero"`
	Refused string            `json:"refused,omitzero"`
	Class   map[string]string `json:"class,omitzero"` // class → condition, overrides the default table
}

type httpSpec struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitzero"`
	Body    any               `json:"body,omitzero"`
	Timeout duration          `json:"timeout_ms"`
	judgeSpec
}

type execSpec struct {
	Argv      []string          `json:"argv"`
	Env       map[string]string `json:"env,omitzero"`
	Dir       string            `json:"dir,omitzero"`
	Stdout    string            `json:"stdout"` // json or text
	AllowDash bool              `json:"allow_dash,omitzero"`
	Timeout   duration          `json:"timeout_ms"`
	judgeSpec
}

type fileSpec struct {
	Root    string       `json:"root"`
	Path    string       `json:"path,omitzero"`
	Content string       `json:"content,omitzero"`
	Collect *collectSpec `json:"collect,omitzero"`
	Timeout duration     `json:"timeout_ms"`
}

type collectSpec struct {
	Folder       string   `json:"folder"`
	Include      []string `json:"include"`
	MaxFiles     int      `json:"max_files"`
	MaxBytes     int      `json:"max_bytes"`
	MaxBytesEach int      `json:"max_bytes_each"`
}

type idempotencySpec struct {
	Header string   `json:"header,omitzero"`
	TTL    duration `json:"ttl_ms"`
}

type reconcileSpec struct {
	HTTP     *httpSpec `json:"http,omitzero"`
	Exec     *execSpec `json:"exec,omitzero"`
	Happened string    `json:"happened"`
	DidNot   string    `json:"did_not"`
	Returns  any       `json:"returns,omitzero"` // the output once it is known to have happened
	Settle   duration  `json:"settle_ms"`
}

// readingSpec is a precondition or a preview; a preview has no check and no
// pin, and alone may say how its answer is read.
type readingSpec struct {
	HTTP   *httpSpec `json:"http"`
	Check  string    `json:"check,omitzero"`
	Pin    string    `json:"pin,omitzero"`
	Output any       `json:"output,omitzero"` // JSON Schema of the answer; it names, it refuses nothing
}

type compensateSpec struct {
	Tool string `json:"tool"`
	With any    `json:"with"`
}

// duration is a length of time whose compiled form is whole milliseconds.
type duration time.Duration

// Duration returns d as the standard type.
func (d duration) Duration() time.Duration { return time.Duration(d) }

// MarshalJSON writes whole milliseconds.
func (d duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).Milliseconds())
}

// UnmarshalJSON reads whole milliseconds.
func (d *duration) UnmarshalJSON(b []byte) error {
	var ms int64
	if err := json.Unmarshal(b, &ms); err != nil {
		return fmt.Errorf("milliseconds: %w", err)
	}
	*d = duration(time.Duration(ms) * time.Millisecond)
	return nil
}
