package pages

import (
	"fmt"
	"slices"

	"countersign/web/templates/parts"

	"github.com/a-h/templ"
)

// need says how far a group is: "1 of 2 finance".
func need(g Group) string { return fmt.Sprintf("%d of %d", g.Have, g.Need) }

func groupState(g Group) string {
	if g.Have >= g.Need {
		return "done"
	}
	return "now"
}

func number(n int64) string { return fmt.Sprint(n) }

func revisionAttributes(r Revision, all []Revision, shown int) templ.Attributes {
	a := templ.Attributes{}
	if r.Current {
		a["aria-current"] = "page"
	}
	if r.Number == shown-1 {
		a["data-older"] = true
	}
	if r.Number == shown+1 {
		a["data-newer"] = true
	}
	return a
}

// keeps has the tab keep what is typed until it is sent, where it may.
func keeps(a Asking) templ.Attributes {
	if !a.Keep {
		return nil
	}
	return templ.Attributes{"data-draft": "answer"}
}

func stepAnchor(s RunStep) templ.Attributes {
	if s.Anchor == "" {
		return nil
	}
	return templ.Attributes{"id": s.Anchor}
}

func passOf(s RunStep) string {
	if s.Pass > 1 {
		return fmt.Sprintf("pass %d", s.Pass)
	}
	return ""
}

func tries(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// unfolded shows every value open, for the confirm step.
func unfolded(v parts.Values, open bool) parts.Values {
	v.Unfold = v.Unfold || open
	return v
}

func armed(v ApprovalView) bool { return v.Act != nil && v.Act.May && v.Act.Armed }

func liveDigest(v ApprovalView) string {
	if v.Act == nil {
		return ""
	}
	return v.Act.Digest
}

// resumeFirst reports whether resuming is the one thing to do: nothing else
// on the page asks for it.
func resumeFirst(v RunView) bool {
	for _, w := range v.Waiting {
		if w.Next != nil {
			return false
		}
	}
	return v.Error == nil || v.Error.Next == nil
}

// faulty reports whether a form came back for one of its fields.
func faulty(fields []parts.Field) bool {
	return slices.ContainsFunc(fields, func(f parts.Field) bool { return f.Error != "" })
}
