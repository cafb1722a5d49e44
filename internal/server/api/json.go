package api

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"countersign/internal/canon"
	"countersign/internal/problem"
	"countersign/internal/server/edge"

	"github.com/labstack/echo/v4"
)

// readJSON reads the body strictly into v: one value, no duplicate or unknown
// keys, no number that would not survive canonical form.
func readJSON(c echo.Context, v any) ([]byte, error) {
	body, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return nil, problem.New(problem.Malformed, "body_missing", "The request needs a JSON body.")
	}
	if err := canon.Decode(body, canon.DefaultLimits, v); err != nil {
		return nil, err
	}
	return body, nil
}

// writeJSON answers with v; numbers and text appear exactly as stored.
func writeJSON(c echo.Context, status int, v any) error {
	w := c.Response()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// problemDocument is RFC 9457 with our code, field errors and details.
type problemDocument struct {
	Type      string          `json:"type"`
	Title     string          `json:"title"`
	Status    int             `json:"status"`
	Code      string          `json:"code"`
	Detail    string          `json:"detail"`
	Errors    []problem.Field `json:"errors,omitempty"`
	Details   map[string]any  `json:"details,omitempty"`
	Reference string          `json:"reference,omitempty"`
}

// Fail answers an error as problem+json and logs it once.
func Fail(logger *slog.Logger, err error, c echo.Context) {
	p := edge.Problem(err)
	edge.Log(logger, c, p)
	if c.Response().Committed {
		return
	}
	status := edge.Status(p)
	w := c.Response()
	w.Header().Set("Content-Type", "application/problem+json")
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter(p))
	}
	w.WriteHeader(status)
	if c.Request().Method == http.MethodHead {
		return
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(problemDocument{ // the client hung up; the log has it
		Type: "about:blank", Title: http.StatusText(status), Status: status, Code: p.Code, Detail: p.Message,
		Errors: p.Fields, Details: p.Details, Reference: edge.Reference(c),
	})
}

func retryAfter(p *problem.Error) string {
	if s, ok := p.Details["retry_after_seconds"].(int); ok && s > 0 {
		return strconv.Itoa(s)
	}
	return "5"
}

// query gathers the query parameters of one request and refuses unknown ones,
// so that a misspelt filter never means all.
type query struct {
	c      echo.Context
	known  map[string]bool
	faults []problem.Field
}

func newQuery(c echo.Context) *query { return &query{c: c, known: map[string]bool{}} }

func (q *query) text(name string) string {
	q.known[name] = true
	return q.c.QueryParam(name)
}

func (q *query) fault(name, message string) {
	q.faults = append(q.faults, problem.Field{Pointer: name, Message: message})
}

func (q *query) integer(name string, low, high, missing int64) int64 {
	s := q.text(name)
	if s == "" {
		return missing
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < low || n > high {
		q.fault(name, "must be a number from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))
	}
	return n
}

// waitMax is the longest a waiting read waits (API.md).
const waitMax = time.Minute

func (q *query) wait() time.Duration {
	s := q.text("wait")
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		q.fault("wait", "must be a duration like 30s")
		return 0
	}
	return min(d, waitMax)
}

func (q *query) instant(name string) time.Time {
	s := q.text(name)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		q.fault(name, "must be an RFC 3339 time like 2026-12-01T09:00:00Z")
	}
	return t.UTC()
}

// page reads cursor and limit (1 to 200, 50 when missing).
func (q *query) page() (cursor string, limit int) {
	return q.text("cursor"), int(q.integer("limit", 1, 200, 50))
}

// err returns what is wrong with the parameters, if anything.
func (q *query) err() error {
	for name := range q.c.QueryParams() {
		if !q.known[name] {
			q.fault(name, "is not a parameter of this call")
		}
	}
	if len(q.faults) == 0 {
		return nil
	}
	return &problem.Error{Kind: problem.Invalid, Code: "invalid_query", Message: "Some parameters of the query do not fit.", Fields: q.faults}
}
