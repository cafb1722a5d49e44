package gallery

import (
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"
)

func runMap(publish string) parts.Map {
	word := map[string]string{"wait": "waits for approval", "unknown": "outcome unknown", "todo": ""}[publish]
	return parts.Map{Title: "weekly-report 2", Lanes: 1, Nodes: []parts.MapNode{
		{Path: "collect_context", Title: "Collect documents", Kind: "call", Row: 0, State: "done", Word: "completed", URL: "#step-collect_context-1"},
		{Path: "make_plan", Title: "Draft the report", Kind: "call", Row: 1, State: "done", Word: "completed", Passes: 2, URL: "#step-make_plan-1"},
		{Path: "publish", Title: "Publish the page", Kind: "action", Row: 2, State: publish, Word: word, Passes: 2, URL: "#step-publish-2"},
		{Path: "summarize", Title: "Summarize", Kind: "set", Row: 3, State: "todo"},
		{Row: 4, State: "todo"},
	}, Edges: []parts.MapEdge{
		{From: "collect_context", To: "make_plan", Kind: "next", Taken: true},
		{From: "make_plan", To: "publish", Kind: "next", Taken: true},
		{From: "publish", To: "make_plan", Kind: "back", Label: "rejected, at most 3×", Lane: 1, Taken: true},
		{From: "publish", To: "", Kind: "end", Label: "expired", Lane: 1},
		{From: "publish", To: "summarize", Kind: "next"},
		{From: "summarize", To: "", Kind: "next"},
	}}
}

func steps() []pages.RunStep {
	return []pages.RunStep{
		{Path: "collect_context", Pass: 1, Anchor: "step-collect_context-1", Title: "Collect documents", Kind: "call", Tool: "docs.collect 1", Status: parts.Status{Code: "completed", Word: "completed"}, Attempts: 1, Started: hours, Took: "0.2 s", Output: &parts.JSON{Title: "Output", Text: "{\"count\":35,\"documents\":[{\"path\":\"checkout-latency.md\",\"size\":1804}]}"}},
		{Path: "make_plan", Pass: 1, Anchor: "step-make_plan-1", Title: "Draft the report", Kind: "call", Tool: "planner.draft 1", Status: parts.Status{Code: "completed", Word: "completed"}, Attempts: 2, Started: hours, Took: "4.1 s", Note: "The first attempt met 503; the second came 1.3 s later.", Output: &parts.JSON{Title: "Output", Text: report}},
		{Path: "publish", Pass: 1, Anchor: "step-publish-1", Title: "Publish the page", Kind: "action", Tool: "kb.publish 1", Status: parts.Status{Code: "rejected", Word: "rejected"}, Started: hours, Took: "1 h 12 min", Error: "Rejected by Ben Okafor: “Two numbers are last week's.”"},
		{Path: "publish", Pass: 2, Anchor: "step-publish-2", Title: "Publish the page", Kind: "action", Tool: "kb.publish 1", Status: parts.Status{Code: "waiting", Word: "waits"}, Started: minutes, Note: "Waits for an approver until 12:40."},
	}
}

func run() pages.RunView {
	return pages.RunView{Page: frame("demo-001", "/runs"), Title: "Weekly engineering report", ID: "run_71", Name: "demo-001", URL: "/runs/run_71", Status: parts.Status{Code: "waiting_approval", Word: "Waits for approval"},
		Workflow: parts.Link{Text: "weekly-report 2", URL: "/definitions/workflow/weekly-report/2"}, Version: 14,
		Waiting: []pages.Waiting{{Title: "Approval of publish", Who: "1 of approver", Until: soon, Resumes: "an approver has decided", Next: &parts.Link{Text: "Open the request", URL: "/approvals/apr_72"}}},
		Actions: pages.RunActions{Expected: 14, Cancel: "/runs/run_71/cancel", CancelNote: "The open request is withdrawn. What was done stays done: 0 effects."},
		Map:     runMap("wait"), Steps: steps(),
		Effects: []pages.EffectRow{{ID: "eff_70", URL: "/effects/eff_70", Path: "publish", Tool: "kb.publish 1", Status: parts.Status{Code: "confirmed", Word: "confirmed"}, Key: "ik_4d1f90b2c7aa", Attempts: 1, Sent: hours, Receipt: "reports/2026-W48.md"}},
		Requests: []pages.RequestRow{
			{URL: "/approvals/apr_70", Title: "Publish the page reports/2026-W49", Revision: 1, Status: parts.Status{Code: "rejected", Word: "rejected"}, Digest: digest2, By: "Ben Okafor", At: hours},
			{URL: "/approvals/apr_72", Title: "Publish the page reports/2026-W49", Revision: 1, Status: parts.Status{Code: "pending", Word: "pending"}, Digest: digest1}},
		Points: []pages.PointRow{
			{Version: 14, URL: "/runs/run_71/checkpoints/14", Event: "asks for approval", Path: "publish", By: "console@host, fence 3", At: minutes, Digest: digest1},
			{Version: 13, URL: "/runs/run_71/checkpoints/13", Event: "completed", Path: "make_plan", By: "console@host, fence 3", At: minutes, Digest: digest2}},
		Audit: entryRows()[:2],
		Facts: []parts.Fact{{Name: "Run", Text: "run_71", Mono: true}, {Name: "Started by", Text: "planner-bot for Ben Okafor"}, {Name: "Started", Time: hours}, {Name: "Last progress", Time: minutes}, {Name: "Model", Text: "planner-7"}, {Name: "Prompt", Text: "weekly 4"}, {Name: "Trace", Text: "4bf92f3577b34da6a3ce929d0e0e4736", Mono: true}, {Name: "Driver", Text: "nobody drives it now"}},
		Input: &parts.JSON{Title: "Input", Text: "{\"folder\":\".\",\"week\":\"2026-W49\"}"}}
}

// asked is a run that asks a person, who has mistyped a field.
func asked() pages.RunView {
	v := run()
	v.Status = parts.Status{Code: "waiting_input", Word: "Waits for an answer"}
	v.Waiting = []pages.Waiting{{Title: "An answer at details", Who: "Ana Ruiz and Ben Okafor", Until: tomorrow, Resumes: "somebody answers, or the time to answer passes"}}
	v.Asking = []pages.Asking{{Anchor: "ask-details-1", Title: "How much", Text: "How much of order 8841 should be refunded to Lin Wei?", Until: tomorrow,
		Answer: "/runs/run_71/answers", Hidden: []parts.Hidden{{Name: "step", Value: "details"}, {Name: "pass", Value: "1"}}, Keep: true,
		Error: &parts.Notice{Tone: "bad", Title: "Something below needs another look; nothing was recorded"},
		Fields: []parts.Field{
			{Name: "/amount", Label: "Amount", Kind: "integer", Required: true, Value: "15 EUR", Hint: "In cents; from 1 to 1,000,000; for example 1500", Error: "must be a whole number"},
			{Name: "/goodwill", Label: "Goodwill", Kind: "yesno", Required: true, Value: "true"},
			{Name: "/why", Label: "Why", Kind: "multiline", Required: true, Value: "A chipped mug.", Max: 2000}}}}
	return v
}

func runs() []Exhibit {
	rows := []pages.RunRow{
		{ID: "run_73", URL: "/runs/run_73", Name: "restart-search-4", Workflow: "restart-service 1", Status: parts.Status{Code: "blocked", Word: "blocked"}, Step: "restart", Waits: "outcome unknown: a person must find out", By: "ops-bot", Started: hours, Progress: hours},
		{ID: "run_71", URL: "/runs/run_71", Name: "demo-001", Workflow: "weekly-report 2", Status: parts.Status{Code: "waiting_approval", Word: "waits for approval"}, Step: "publish", Waits: "for 1 of approver until 12:40", By: "planner-bot for Ben Okafor", Started: hours, Progress: minutes},
		{ID: "run_70", URL: "/runs/run_70", Name: "refund-8841", Workflow: "refund 1", Status: parts.Status{Code: "running", Word: "running"}, Step: "order", By: "billing-agent for Mara Kline", Started: minute, Progress: now},
		{ID: "run_69", URL: "/runs/run_69", Name: "refund-8790", Workflow: "refund 1", Status: parts.Status{Code: "retrying", Word: "retrying"}, Step: "order", Waits: "again in 8 s, attempt 3 of 4", By: "billing-agent", Started: minutes, Progress: minutes},
		{ID: "run_66", URL: "/runs/run_66", Name: "refund-8702", Workflow: "refund 1", Status: parts.Status{Code: "completed", Word: "completed"}, Step: "–", By: "billing-agent for Mara Kline", Started: days, Progress: days},
		{ID: "run_65", URL: "/runs/run_65", Name: "refund-8699", Workflow: "refund 1", Status: parts.Status{Code: "failed", Word: "failed"}, Step: "refund", By: "billing-agent", Started: days, Progress: days},
	}
	list := pages.RunsView{Page: frame("Runs", "/runs"), Search: search("/runs"), Rows: rows, More: "/runs?cursor=x", Start: "/runs/new"}
	blocked := run()
	blocked.Status, blocked.Waiting, blocked.Map = parts.Status{Code: "blocked", Word: "Blocked"}, nil, runMap("unknown")
	blocked.Error = &parts.Notice{Tone: "unknown", Title: "Nobody knows whether publish happened", Text: "It was sent at 09:20 and no answer came. Find out, then the run goes on by itself.", Next: &parts.Link{Text: "Find out what happened", URL: "/effects/eff_70"}}
	blocked.Actions.Resume, blocked.Actions.ResumeNote = "/runs/run_71/resume", "Goes on at publish. First the chain of 14 checkpoints, 1 effect, the approval and 3 versions are checked."
	moves := run()
	moves.Actions.Move = &pages.Move{URL: "/runs/run_71/migrate", To: 3, Kept: []string{"collect_context", "make_plan"}, Again: []string{"publish (now put)"}, Dropped: []string{"notify"}}
	stays := run()
	stays.Actions.Move = &pages.Move{To: 3, WhyNot: "The run cannot continue in version 3 of weekly-report: it stands at step publish, which is not there any more; say under rename_steps what it became."}
	done := run()
	done.Status, done.Actions = parts.Status{Code: "completed", Word: "Completed"}, pages.RunActions{WhyNone: "It has ended. A run that has ended is not started again.", Correct: "/runs/run_71/corrections",
		Fixes: []pages.Fix{{Did: "publish", With: "kb.publish: Publish the page reports/2026-W48"}, {Did: "refund", Why: "The tool names nothing that corrects it."}}}
	empty := pages.RunView{Page: frame("run_80", "/runs"), Name: "run_80", URL: "/runs/run_80", Status: parts.Status{Code: "queued", Word: "Queued"}, Workflow: parts.Link{Text: "refund 1"}, Actions: pages.RunActions{WhyNone: "It starts by itself within seconds."}, Map: runMap("todo")}
	ask := asked()
	told := ask
	told.Asking = []pages.Asking{{Anchor: "ask-details-1", Title: "How much", Text: ask.Asking[0].Text, Until: tomorrow, WhyNot: "You may not answer this. People with the role support or finance can.", WhoCan: []string{"Ana Ruiz", "Ben Okafor"}}}
	late := told
	late.Asking = []pages.Asking{{Anchor: "ask-details-1", Title: "How much", Text: ask.Asking[0].Text, Error: &parts.Notice{Tone: "bad", Title: "Ben Okafor has answered this already. Your answer was not recorded."}, Typed: &parts.JSON{Title: "What you typed", Text: "{\"amount\":2000,\"why\":\"It was late.\"}"}}}
	point := pages.CheckpointView{Page: frame("Checkpoint 13", "/runs"), Back: parts.Link{Text: "demo-001", URL: "/runs/run_71"}, Version: 13, Of: 14, Previous: "/runs/run_71/checkpoints/12", Next: "/runs/run_71/checkpoints/14",
		Facts: []parts.Fact{{Name: "Event", Text: "call_done"}, {Name: "Step", Text: "make_plan, pass 2"}, {Name: "By", Text: "console@host, fence 3"}, {Name: "When", Time: minutes}, {Name: "Digest", Digest: digest2}, {Name: "Before it", Digest: digest3}},
		Event: &parts.JSON{Title: "What was recorded", Text: "{\"kind\":\"call_done\",\"path\":\"make_plan\"}"}, State: steps()[:3]}
	choose := pages.StartView{Page: frame("Start a run", "/runs"), Choices: []pages.StartChoice{{Name: "refund 1", Title: "Refund a customer", URL: "/runs/new?workflow=refund"}, {Name: "weekly-report 2", Title: "Weekly engineering report", URL: "/runs/new?workflow=weekly-report"}}}
	start := pages.StartView{Page: frame("Start a run", "/runs"), Title: "Refund a customer", Action: "/runs", Hidden: []parts.Hidden{{Name: "workflow", Value: "refund"}}, Fields: []parts.Field{
		{Name: "/order_id", Label: "order_id", Kind: "text", Required: true, Hint: "4 to 10 digits", Value: "88", Error: "This must be 4 to 10 digits."},
		{Name: "/amount", Label: "amount", Kind: "integer", Required: true, Hint: "whole number, 1 to 1,000,000"},
		{Name: "/why", Label: "why", Kind: "multiline", Required: true, Max: 2000},
		{Name: "run_key", Label: "Run key", Kind: "text", Hint: "The same key never starts a second run."}},
		Error: &parts.Notice{Tone: "bad", Title: "One thing to correct", Text: "Nothing was started."}}
	return []Exhibit{
		show("runs-empty", pages.Runs, pages.RunsView{Page: frame("Runs", "/runs"), Search: search("/runs"), Empty: &parts.Empty{Title: "No run yet", Text: "A run is one execution of a workflow.", Next: &parts.Link{Text: "Start a run…", URL: "/runs/new"}}}),
		show("runs", pages.Runs, list), deceive("runs", pages.Runs, list),
		show("run-empty", pages.Run, empty), show("run", pages.Run, run()), show("run-blocked", pages.Run, blocked), show("run-correct", pages.Run, done), show("run-moves", pages.Run, moves), show("run-cannot-move", pages.Run, stays), deceive("run", pages.Run, blocked),
		show("run-asks", pages.Run, ask), show("run-asks-others", pages.Run, told), show("run-answered-meanwhile", pages.Run, late), deceive("run-asks", pages.Run, ask),
		show("checkpoint", pages.Checkpoint, point), deceive("checkpoint", pages.Checkpoint, point),
		show("start-choose", pages.Start, choose), show("start", pages.Start, start), deceive("start", pages.Start, start),
	}
}

func stuck() []Exhibit {
	v := pages.AttentionView{Page: frame("Needs attention", "/attention"), Groups: []pages.Cause{
		{Title: "Outcome unknown", Tone: "unknown", Text: "Something was sent and nobody knows whether it happened. It is not sent again until somebody finds out.", Rows: []pages.Stuck{
			{Title: "Restart the service search", URL: "/effects/eff_73", Where: "restart-search-4, step restart", Since: hours, Why: "The process ended without telling how.", Blocks: "the run", Next: parts.Link{Text: "Find out what happened", URL: "/effects/eff_73"}}}},
		{Title: "Nobody can approve", Tone: "bad", Text: "The policy asks for people who are not there.", Rows: []pages.Stuck{
			{Title: "Refund 900.00 EUR on order 8800", URL: "/approvals/apr_60", Where: "refund-8800, step refund", Since: days, Why: "Needs 2 of finance; only Lin Wei can.", Next: parts.Link{Text: "See who is excluded", URL: "/approvals/apr_60#policy-title"}}}},
		{Title: "Keeps failing", Tone: "bad", Text: "Its driver died again and again without progress, so it was set aside.", Rows: []pages.Stuck{
			{Title: "import-catalogue", URL: "/runs/run_50", Where: "step load", Since: hours, Why: "Five takeovers, no checkpoint.", Next: parts.Link{Text: "Look at the run", URL: "/runs/run_50"}}}},
		{Title: "Approved but not started", Tone: "warn", Text: "The time to start runs out.", Rows: []pages.Stuck{
			{Title: "Publish the page reports/2026-W47", URL: "/approvals/apr_52", Where: "demo-000, step publish", Since: minutes, Next: parts.Link{Text: "Resume the run", URL: "/runs/run_47"}}}},
	}}
	effect := pages.EffectView{Page: frame("Find out what happened", "/attention"), Back: parts.Link{Text: "Needs attention", URL: "/attention"}, ID: "eff_73", Sentence: "Restart the service search", Status: parts.Status{Code: "unknown", Word: "Unknown"},
		Notice:  &parts.Notice{Tone: "unknown", Title: "Sent at 09:20:11, no answer since", Text: "The process ended without telling how. Nothing is sent again until you have said what happened."},
		Facts:   []parts.Fact{{Name: "Tool", Text: "ops.restart 1"}, {Name: "Idempotency key", Text: "ik_90ab3c", Mono: true}, {Name: "Protects until", Text: "the target does not know keys"}, {Name: "Sent", Time: hours}, {Name: "Attempts", Text: "1"}, {Name: "Run", Link: &parts.Link{Text: "restart-search-4", URL: "/runs/run_73"}}, {Name: "Approval", Link: &parts.Link{Text: "apr_61, approved by you", URL: "/approvals/apr_61"}}},
		Request: &parts.JSON{Title: "The command that was run", Text: "console stand-ins restart --service=search --drain=1"}, CannotAsk: "ops.restart declares no way to ask the target. Look at the service itself.",
		Evidence: []pages.EvidenceRow{{Kind: "late answer", At: hours, Body: &parts.JSON{Title: "Answer", Text: "{\"exit\":null}"}}},
		Action:   "/effects/eff_73/resolve", Choices: []pages.Choice{
			{Value: "happened", Title: "It happened", Then: "The step is completed with the receipt you give. Nothing is sent."},
			{Value: "did_not_send_again", Title: "It did not happen: send it again", Then: "Policy, approval and deadlines are checked again; then it is sent once more with the same key.", Off: "the time to start passed at 09:35"},
			{Value: "did_not_stop", Title: "It did not happen: stop", Then: "The step fails as not done, and the workflow's rule for errors applies."},
			{Value: "give_up", Title: "It cannot be found out", Then: "The effect is abandoned: recorded for ever as unknown. The step fails."}},
		Text: parts.Field{Name: "evidence", Label: "How do you know?", Kind: "multiline", Required: true, Hint: "What you looked at and what it showed. It is kept in the audit log."}, Receipt: parts.Field{Name: "receipt", Label: "Receipt, if it happened", Kind: "json", Hint: "JSON; becomes the output of the step"}}
	refused := effect
	refused.Notice, refused.Unchosen, refused.Text.Error = &parts.Notice{Tone: "bad", Title: "Nothing was changed."}, "Choose one.", "say why, in a few words"
	asked := effect
	asked.CannotAsk, asked.Ask, asked.TwoPersons = "", "/effects/eff_73/ask", "Critical: a second person has to say the same before anything follows."
	asked.Answer = &pages.TargetAnswer{Tone: "good", Text: "The target lists one refund with this key, made at 09:20:12.", At: minute, Body: &parts.JSON{Title: "Its answer", Text: "{\"items\":[{\"id\":\"rf_20931\"}]}"}}
	settled := effect
	settled.Action, settled.Notice, settled.Status = "", nil, parts.Status{Code: "confirmed", Word: "Confirmed"}
	settled.Settled = &parts.Notice{Tone: "good", Title: "Ana Ruiz: it happened", Text: "“The service log shows the restart at 09:20:12.” Recorded at 10:02."}
	settled.WhyNot = "This is settled. What was recorded stays."
	return []Exhibit{
		show("attention-empty", pages.Attention, pages.AttentionView{Page: frame("Needs attention", "/attention"), Empty: &parts.Empty{Title: "Nothing is stuck", Text: "No unknown outcome, no dead end, nothing overdue."}}),
		show("attention", pages.Attention, v), deceive("attention", pages.Attention, v),
		show("effect", pages.Effect, effect), show("effect-refused", pages.Effect, refused), show("effect-asked", pages.Effect, asked), show("effect-settled", pages.Effect, settled), deceive("effect", pages.Effect, asked),
	}
}
