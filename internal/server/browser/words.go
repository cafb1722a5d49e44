package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"countersign/web/templates/parts"
)

// statusWords are the words of statuses that are read otherwise than written.
var statusWords = map[string]string{
	"waiting_approval": "waits for approval", "waiting_input": "waits for an answer", "sleeping": "sleeps", "retrying": "tries again",
	"not_done": "not done", "unknown": "outcome unknown", "pending": "waits", "allowed": "allowed by the policy",
}

// status is a status of the product as it is shown.
func status(code string) parts.Status {
	word, ok := statusWords[code]
	if !ok {
		word = strings.ReplaceAll(code, "_", " ")
	}
	return parts.Status{Code: code, Word: word}
}

// document is stored JSON, indented; its numbers and texts stay as they are.
func document(title string, raw json.RawMessage) *parts.JSON {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return &parts.JSON{Title: title, Text: indented(raw)}
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// shortID is the end of an id, enough to tell things apart in a list.
func shortID(s string) string {
	if len(s) <= 10 {
		return s
	}
	return s[:4] + "…" + s[len(s)-6:]
}

// address is a path with one escaped part.
func address(base, part string) string { return base + url.PathEscape(part) }

// withQuery adds the parameters that are not empty.
func withQuery(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// filter is a choice whose first option stands for any.
func filter(name, label, chosen string, values ...string) parts.Filter {
	f := parts.Filter{Name: name, Label: label, Options: []parts.Option{{Value: "", Text: "any"}}}
	for _, v := range values {
		f.Options = append(f.Options, parts.Option{Value: v, Text: status(v).Word, Selected: v == chosen})
	}
	return f
}

// search is the line above a list: what is on can be taken off one by one.
func search(action, query, hint string, on map[string]string, filters ...parts.Filter) parts.Search {
	s := parts.Search{Action: action, Query: query, Hint: hint, Filters: filters}
	for _, f := range filters {
		if v := on[f.Name]; v != "" {
			rest := []string{"q", query}
			for _, other := range filters {
				if other.Name != f.Name {
					rest = append(rest, other.Name, on[other.Name])
				}
			}
			s.Chips = append(s.Chips, parts.Chip{Text: f.Label + ": " + status(v).Word, Remove: withQuery(action, rest...)})
		}
	}
	if query != "" || len(s.Chips) > 0 {
		s.Clear = action
	}
	return s
}

// byName names who did something, on whose behalf.
func byName(name, onBehalf string) string {
	if onBehalf == "" || onBehalf == name {
		return name
	}
	return fmt.Sprintf("%s for %s", name, onBehalf)
}
