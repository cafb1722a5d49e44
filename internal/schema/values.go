package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/problem"
)

// numbers copies a decoded value with its numbers as json.Number, which the
// validator compares exactly. left is how many more values are allowed.
func numbers(v any, depth int, left *int) (any, error) {
	if *left--; *left < 0 {
		return nil, errors.New("there are too many values")
	}
	if depth > DepthMax {
		return nil, fmt.Errorf("values nest deeper than %d levels", DepthMax)
	}
	switch v := v.(type) {
	case nil, bool, string:
		return v, nil
	case json.Number:
		return v, checkNumber(string(v))
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, fmt.Errorf("%v is no JSON number", v)
		}
		return json.Number(canon.Number(v)), nil
	case int:
		return json.Number(strconv.Itoa(v)), nil
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			var err error
			if out[i], err = numbers(x, depth+1, left); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			var err error
			if out[k], err = numbers(x, depth+1, left); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("a %T is no JSON value", v)
}

// numberMax bounds the text of a number, so that exact arithmetic on it stays
// cheap.
const numberMax = 800

func checkNumber(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	vanished := f == 0 && strings.Trim(mantissa, "-0.") != ""
	if len(text) > numberMax || err != nil || vanished {
		return fmt.Errorf("the number %.40s is outside the range of numbers", text)
	}
	return nil
}

// instance prepares a value for the validator. Raw JSON keeps its numbers as
// written, so that a message can repeat one that a double would round.
func instance(v any) (any, error) {
	if raw, ok := v.(json.RawMessage); ok {
		decoded, err := decoded(raw)
		if err != nil {
			return nil, err
		}
		v = decoded
	}
	left := math.MaxInt // a value's size is the business of its intake
	out, err := numbers(v, 0, &left)
	if err != nil {
		return nil, problem.New(problem.Invalid, "invalid", "The data is not JSON: %v.", err)
	}
	return out, nil
}

func decoded(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, problem.New(problem.Malformed, "malformed_json", "The data is not valid JSON: %v.", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, problem.New(problem.Malformed, "malformed_json", "The data holds more than one JSON value.")
	}
	return v, nil
}

// plain copies a value with its numbers as float64.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64()
		return f
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = plain(x)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = plain(x)
		}
		return out
	}
	return v
}
