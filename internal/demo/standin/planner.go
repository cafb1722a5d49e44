package standin

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// document is one of the documents the planner is given.
type document struct {
	Path  string `json:"path"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// draft writes a report from the documents, the same for the same documents:
// a stand-in for a language model that costs nothing and never tires.
func (s *Server) draft(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Week      string     `json:"week"`
		Documents []document `json:"documents"`
	}
	if !decode(w, r, &q) {
		return
	}
	if s.takeFault("draft") == "busy" {
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, "the planner is busy")
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"title":    "Engineering report " + q.Week,
		"markdown": report(q.Week, q.Documents),
		"why": fmt.Sprintf("The report for %s is due. It draws on %d documents; every statement names the one it is from.",
			q.Week, len(q.Documents)),
		"model": "planner-stand-in-1",
	})
}

func report(week string, docs []document) string {
	docs = slices.Clone(docs)
	slices.SortFunc(docs, func(a, b document) int { return cmp.Compare(a.Path, b.Path) })
	words := 0
	var body strings.Builder
	for _, topic := range topics(docs) {
		fmt.Fprintf(&body, "\n## %s\n\n", topic.name)
		for _, d := range topic.docs {
			words += len(strings.Fields(d.Text))
			fmt.Fprintf(&body, "- **%s.** %s (`%s`)\n", cmp.Or(d.Title, d.Path), lead(d.Text), d.Path)
		}
	}
	return fmt.Sprintf("# Engineering report %s\n\nDrawn from %d documents, %d words.\n%s", week, len(docs), words, body.String())
}

type topic struct {
	name string
	docs []document
}

// topics groups the documents by what their path begins with.
func topics(docs []document) []topic {
	var all []topic
	for _, d := range docs {
		name := "Notes"
		if head, _, ok := strings.Cut(d.Path, "-"); ok && !strings.ContainsAny(head, "0123456789/") {
			name = strings.ToUpper(head[:1]) + head[1:]
		}
		i := slices.IndexFunc(all, func(t topic) bool { return t.name == name })
		if i < 0 {
			all = append(all, topic{name: name})
			i = len(all) - 1
		}
		all[i].docs = append(all[i].docs, d)
	}
	slices.SortStableFunc(all, func(a, b topic) int { return cmp.Compare(a.name, b.name) })
	return all
}

// lead returns the first sentence of the first paragraph that is not a
// heading or a list.
func lead(text string) string {
	for _, para := range strings.Split(text, "\n\n") {
		para = strings.Join(strings.Fields(para), " ")
		if para == "" || strings.HasPrefix(para, "#") || strings.HasPrefix(para, "-") {
			continue
		}
		if first, _, ok := strings.Cut(para, ". "); ok {
			return first + "."
		}
		return para
	}
	return ""
}
