package parts

import (
	"countersign/web/visible"

	"github.com/a-h/templ"
)

func noticeRole(tone string) string {
	if tone == "bad" || tone == "warn" || tone == "unknown" {
		return "alert"
	}
	return "status"
}

func stepGlyph(state string) string {
	switch state {
	case "done":
		return "good"
	case "now":
		return "now"
	case "wait":
		return "wait"
	case "bad", "unknown":
		return state
	}
	return "plain"
}

func stepWord(state string) string {
	switch state {
	case "done":
		return "done"
	case "now":
		return "now"
	case "wait":
		return "waits"
	case "bad":
		return "failed"
	case "unknown":
		return "outcome unknown"
	case "skipped":
		return "skipped"
	}
	return "to come"
}

// RiskWord is the risk as it is read.
func RiskWord(risk string) string {
	switch risk {
	case "low", "medium", "high", "critical":
		return risk
	}
	return "unrated"
}

func riskClass(risk string) string {
	if RiskWord(risk) != risk {
		return "risk-high" // what nobody rated is not shown as harmless
	}
	return "risk-" + risk
}

func sizeOf(s string) string { return visible.Inspect(s).Size() }

func suspicions(s string) ([]string, []visible.Host) {
	t := visible.Inspect(s)
	return t.Warnings, t.Hosts
}

func countOf(n int) string { return visible.Count(n) }

func currentRow(r QueueRow) templ.Attributes {
	a := templ.Attributes{"data-row": true}
	if r.Current {
		a["aria-current"] = "page"
	}
	return a
}
