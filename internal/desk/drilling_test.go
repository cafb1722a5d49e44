package desk_test

import (
	"testing"
	"time"

	"countersign/internal/desk"
)

func TestDrill_TheLastIsShownAndAges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shown := func() *desk.Drill {
		t.Helper()
		page, err := w.desk.DefinitionList(t.Context(), w.principal("dev"), "workflow")
		w.must(err)
		for _, d := range page.Items {
			if d.Name == "refund" {
				return d.Drill
			}
		}
		t.Fatal("there is no workflow refund")
		return nil
	}
	if last := shown(); last != nil {
		t.Errorf("before any drill there is %+v", last)
	}
	flow, err := w.desk.WorkflowOf(t.Context(), desk.Terminal(), "refund", 0)
	w.must(err)
	w.must(w.desk.RecordDrill(t.Context(), desk.Terminal(), flow.Digest, desk.Drill{Cases: 3, Findings: 1, Status: "failed"}))
	w.must(w.desk.RecordDrill(t.Context(), desk.Terminal(), flow.Digest, desk.Drill{Cases: 17, Status: "completed"}))
	if last := shown(); last == nil || last.Cases != 17 || last.Findings != 0 || last.Old {
		t.Errorf("the last drill is %+v", last)
	}
	if got := w.entries("workflow.drilled", ""); len(got) != 2 {
		t.Errorf("the log has %d entries of drills, want 2", len(got))
	}
	w.wantProblem(w.desk.RecordDrill(t.Context(), desk.Terminal(), "sha256:nothing", desk.Drill{}), "not_found")
	w.wantProblem(w.desk.RecordDrill(t.Context(), w.principal("dev"), flow.Digest, desk.Drill{}), "forbidden")
	w.close()
	w.ahead = desk.DrillAges + time.Hour
	w.open()
	if last := shown(); last == nil || !last.Old {
		t.Errorf("a month later the last drill is %+v", last)
	}
}
