// Package problem holds the errors a person or a program may see: a kind that
// decides the status, a stable code, and one sentence that says what happened
// and what to do.
//
// It guarantees that an error which is not a *Error shows nothing of itself:
// From turns it into an internal problem with a fixed text. It must not know
// HTTP, SQL or any domain type; the edge maps kinds to statuses.
package problem

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is the class of a problem; the edges map each to one status.
type Kind string

// The kinds. Each has one HTTP status (RFC 9110) at the edge, named here.
const (
	Invalid         Kind = "invalid"         // 422: the input is at fault; Fields say where
	Malformed       Kind = "malformed"       // 400: the input could not be read at all
	Unauthenticated Kind = "unauthenticated" // 401
	Forbidden       Kind = "forbidden"       // 403
	NotFound        Kind = "not_found"       // 404, also what another tenant's object is
	Conflict        Kind = "conflict"        // 409: true a moment ago, not now
	TooLarge        Kind = "too_large"       // 413
	RateLimited     Kind = "rate_limited"    // 429
	Internal        Kind = "internal"        // 500: our fault; the cause goes to the log only
	Unavailable     Kind = "unavailable"     // 503: try again
)

// Field is one fault in an input: a JSON Pointer (RFC 6901) into the document
// or the name of a form field, and what is wrong there.
type Field struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// Error is a problem that may be shown. Message is a whole sentence for a
// person; Code is stable and for programs; Details carries what the caller
// needs to act (the winning decision, the current version). Err is the cause
// and is never shown.
type Error struct {
	Kind    Kind
	Code    string
	Message string
	Fields  []Field
	Details map[string]any
	Err     error
}

// New makes a problem of the kind with a code and a sentence.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error joins the sentence, its fields and the cause, for logs and terminals.
func (e *Error) Error() string {
	text := e.Message
	for _, f := range e.Fields {
		where := f.Pointer
		if where == "" {
			where = "(document)"
		}
		text = strings.TrimSuffix(text, ".") + fmt.Sprintf("; %s: %s", where, f.Message)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the hidden cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is a problem of the same code, so that a package
// may keep a sentinel problem and return copies with details.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Kind == e.Kind
}

// With returns a copy that carries one more detail.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Details = make(map[string]any, len(e.Details)+1)
	for k, v := range e.Details {
		c.Details[k] = v
	}
	c.Details[key] = value
	return &c
}

// At returns a copy with one more field fault.
func (e *Error) At(pointer, format string, args ...any) *Error {
	c := *e
	c.Fields = append(append([]Field(nil), e.Fields...), Field{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
	return &c
}

// Because returns a copy with a hidden cause.
func (e *Error) Because(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// From returns the problem in err's chain, or an internal problem that hides
// err behind a fixed sentence. It returns nil for nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{
		Kind: Internal, Code: "internal", Err: err,
		Message: "Something went wrong on our side. Nothing was changed; try again, and give the reference to whoever runs this console.",
	}
}

// HasCode reports whether err carries a problem with the code.
func HasCode(err error, code string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}
