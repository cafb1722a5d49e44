package workflow

import "encoding/json"

// mustJSON encodes our own small structs, which cannot fail.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("workflow: encode: " + err.Error())
	}
	return b
}
