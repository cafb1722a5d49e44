package browser

import (
	"encoding/json"
	"strings"

	"countersign/internal/engine"
	"countersign/internal/workflow"
)

// eventWord is what each kind of event says on a page.
var eventWord = map[workflow.EventKind]string{
	workflow.Started: "the run started", workflow.StepCompleted: "completed", workflow.StepSkipped: "skipped: its condition was false",
	workflow.StepFailed: "failed for good", workflow.StepRetried: "is tried again, as a person asked", workflow.StepRefreshed: "went stale and is read again",
	workflow.ActionProposed: "asks for approval", workflow.ActionDenied: "denied by the policy", workflow.ActionRejected: "rejected",
	workflow.ActionExpired: "expired undecided or not started", workflow.ActionRevised: "changed: a new revision", workflow.EffectConfirmed: "done, once",
	workflow.EffectRefused: "refused by the target", workflow.EffectAbandoned: "given up by a person", workflow.ApproveOpened: "a document is presented",
	workflow.AskOpened: "a question is put", workflow.AskAnswered: "answered", workflow.AskExpired: "nobody answered in time",
	workflow.ApproveDone: "the document was decided", workflow.SleepSet: "sleeps until a time", workflow.SleepDone: "woke up", workflow.Goto: "went to another step",
	workflow.BranchesOpened: "its branches began", workflow.Migrated: "went on to another version of the workflow", workflow.Cancelled: "the run was cancelled", workflow.Finished: "the run ended",
}

// eventWords is what a checkpoint recorded. A kind this program does not know
// is shown as it is stored.
func eventWords(p engine.Checkpoint) string {
	var e struct{ Kind workflow.EventKind }
	if json.Unmarshal(p.Event, &e) != nil || e.Kind == "" {
		return "cannot be read"
	}
	if word, ok := eventWord[e.Kind]; ok {
		return word
	}
	return strings.ReplaceAll(string(e.Kind), "_", " ")
}
