package tools

import (
	"context"
	"encoding/json"
	"errors"

	"countersign/internal/canon"
)

var errNoCompensation = errors.New("the tool names nothing that corrects it")

// Compensate computes the call that corrects a confirmed one: the tool it
// names and the parameters, from those of the call, its output and the answer
// on its receipt. Sensitive values stay sealed. It is an error where the tool
// names nothing, or the receipt does not hold what the template needs.
func (t *Tool) Compensate(params, output json.RawMessage, r Receipt, cfg Config) (tool string, with json.RawMessage, err error) {
	c, ok := t.Compensation()
	if !ok {
		return "", nil, t.cannot("compensation", errNoCompensation)
	}
	vars, err := inVars(orNull(params), cfg)
	if err != nil {
		return "", nil, err
	}
	result := map[string]any{"status": float64(r.Status), "headers": map[string]any{}}
	for name, text := range r.Headers {
		result["headers"].(map[string]any)[name] = text
	}
	for into, doc := range map[string]json.RawMessage{"body": r.Body, "output": output} {
		v, err := canon.Value(orNull(doc))
		if err != nil {
			return "", nil, err
		}
		if into == "body" {
			result["body"] = v
		} else {
			vars[into] = v
		}
	}
	vars["result"] = result
	v, err := t.code.compensate.Eval(context.Background(), vars)
	if err != nil {
		return "", nil, t.cannot("compensation", err)
	}
	with, err = canon.Marshal(v)
	return c.Tool, with, err
}
