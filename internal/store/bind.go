package store

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"time"
)

// Micros is how a time is stored: microseconds since 1970, so that the order
// of the column is the order of time.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// FromMicros is the time of a stored number of microseconds, in UTC.
func FromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

// errTime refuses a time.Time as an argument: as text its order would not be
// the order of time.
var errTime = errors.New("a time is stored as store.Micros(t)")

// bindable is the value of an argument as the driver takes it. JSON is stored
// as TEXT, nil JSON as NULL.
func bindable(v any) (driver.Value, error) {
	switch v := v.(type) {
	case nil, string, int64, float64, bool, []byte:
		return v, nil
	case int:
		return int64(v), nil
	case json.RawMessage:
		if v == nil {
			return nil, nil
		}
		return string(v), nil
	case time.Time, *time.Time:
		return nil, errTime
	}
	out, err := driver.DefaultParameterConverter.ConvertValue(v)
	if _, isTime := out.(time.Time); isTime {
		return nil, errTime
	}
	return out, err
}
