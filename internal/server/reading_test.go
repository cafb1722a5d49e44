package server_test

import (
	"net/http"
	"strings"
	"testing"
)

// inOrder fails unless the texts follow one another on the page.
func (s *site) inOrder(what, page string, texts ...string) {
	s.t.Helper()
	rest := page
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			s.t.Fatalf("%s: %q is missing, or not where it should be, in\n%s", what, text, page)
		}
		rest = after
	}
}

// TestApproval_ReadsAsTheToolsSchemaSays: amounts as money beside the exact
// number, rows under their titles and in the schema's order.
func TestApproval_ReadsAsTheToolsSchemaSays(t *testing.T) {
	s := newSite(t)
	a := s.refund("Damaged.")
	w := s.get("ana", "/approvals/"+a.ID)
	page := readable(w)
	_, page, _ = strings.Cut(page, "Measured effect")
	s.inOrder("the measured effect and the parameters", page, "Customer", "Paid", "EUR stored as", "Already refunded", "0.00 EUR stored as 0", "Left after this", "Currency",
		"Parameters", "Order order_id", "Amount", "125.00 EUR stored as 12500", "Currency", "Note to the customer")
	if !strings.Contains(w.Body.String(), `data-copy="12500"`) {
		t.Error("copying the amount does not give the exact number")
	}
	s.want("an edit", s.post("ana", "/approvals/"+a.ID+"/edit", "do", "save", "digest", a.Digest, "/amount", "9900", "comment", "Less."), http.StatusSeeOther)
	s.inOrder("what changed", readable(s.get("ben", "/approvals/"+a.ID)), "What changed", "Amount", "125.00 EUR stored as 12500", "99.00 EUR stored as 9900")
	s.inOrder("what stays", readable(s.get("ana", "/approvals/"+a.ID+"/edit")), "Amount", "9900 is 99.00 EUR", "smallest unit", "Stays as it is", "Order order_id", "4180", "Currency")
}

// TestStart_SaysWhatIsWantedInWords: a pattern is for machines, and stands in
// the error alone.
func TestStart_SaysWhatIsWantedInWords(t *testing.T) {
	s := newSite(t)
	for _, workflow := range []string{"refund", "weekly-report", "restart-service"} {
		w := s.get("dev", "/runs/new?workflow="+workflow)
		s.want(workflow, w, http.StatusOK)
		if page := readable(w); strings.Contains(page, "{4") || strings.Contains(page, "[0-9]") || strings.Contains(page, `\d`) {
			t.Errorf("the form of %s shows a pattern:\n%s", workflow, page)
		}
	}
	s.want("the form", s.get("dev", "/runs/new?workflow=refund"), http.StatusOK, "Order", "Its number, 4 to 10 digits; for example 47110", "for example 12500")
	s.want("a bad number", s.post("dev", "/runs", "workflow", "refund", "/order_id", "12", "/amount", "5", "/why", "Late."), http.StatusUnprocessableEntity, `does not match the pattern ^[0-9]{4,10}$`)
}
