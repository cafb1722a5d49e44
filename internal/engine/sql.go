package engine

import (
	"database/sql"
	"encoding/json"
	"time"

	"countersign/internal/canon"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// scanner is a row that can be read: *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

// nullable is nil for the zero time, else its microseconds.
func nullable(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return store.Micros(t)
}

// micros is 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return store.Micros(t)
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return store.FromMicros(n)
}

func fromNull(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return store.FromMicros(n.Int64)
}

// text is how JSON is stored: as text, or NULL when there is none.
func text(j json.RawMessage) any {
	if len(j) == 0 {
		return nil
	}
	return string(j)
}

func raw(s sql.NullString) json.RawMessage {
	if !s.Valid {
		return nil
	}
	return json.RawMessage(s.String)
}

// encode is the JSON of our own small structs, which cannot fail.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("engine: encode: " + err.Error())
	}
	return string(b)
}

func encodeFailure(f *workflow.Failure) any {
	if f == nil {
		return nil
	}
	return encode(f)
}

func decodeFailure(s sql.NullString) (*workflow.Failure, error) {
	if !s.Valid {
		return nil, nil
	}
	f := &workflow.Failure{}
	return f, json.Unmarshal([]byte(s.String), f)
}

func digestOf(b []byte) string { return canon.Digest(b) }
