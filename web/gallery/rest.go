package gallery

import (
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"
)

func entryRows() []pages.EntryRow {
	return []pages.EntryRow{
		{Seq: "18,422", URL: "/audit/entries/ent_18422", At: minute, Who: "Ana Ruiz", How: "session, password", Action: "approval.decided", Subject: parts.Link{Text: "apr_71, revision 2", URL: "/approvals/apr_71"}, Outcome: parts.Status{Code: "good", Word: "approved"}, Digest: digest1},
		{Seq: "18,421", URL: "/audit/entries/ent_18421", At: minutes, Who: "engine", How: "console@host, fence 3", Action: "effect.sent", Subject: parts.Link{Text: "eff_71", URL: "/effects/eff_71"}, Outcome: parts.Status{Code: "sent", Word: "sent"}, Digest: digest1},
		{Seq: "18,420", URL: "/audit/entries/ent_18420", At: minutes, Who: "Mara Kline", How: "session, password", Action: "approval.refused", Subject: parts.Link{Text: "apr_71, revision 2", URL: "/approvals/apr_71"}, Outcome: parts.Status{Code: "bad", Word: "self_approval"}, Digest: digest1},
		{Seq: "18,419", URL: "/audit/entries/ent_18419", At: hours, Who: "unknown", How: "from 203.0.113.9", Action: "session.failed", Subject: parts.Link{Text: "ana@example.org"}, Outcome: parts.Status{Code: "bad", Word: "wrong password"}},
	}
}

func log() []Exhibit {
	list := pages.AuditView{Page: frame("Audit", "/audit"), Search: parts.Search{Action: "/audit", Hint: "Person, object, action", Fields: []parts.Field{{Name: "since", Label: "Since", Kind: "date"}, {Name: "until", Label: "Until", Kind: "date"}}}, Rows: entryRows(), More: "/audit?cursor=x",
		Head: []parts.Fact{{Name: "Entries", Text: "18,422"}, {Name: "Root", Digest: digest3}, {Name: "Signed", Time: minute}, {Name: "Key", Text: "countersign/demo/default/1+7f3a21c0", Mono: true}}, HeadURL: "/audit/head", Verify: "/audit/verify", JSONLines: "/audit/export.jsonl", CSV: "/audit/export.csv"}
	good, bad := list, list
	good.Result = &pages.VerifyResult{Notice: parts.Notice{Tone: "good", Title: "The log holds", Text: "All 18,422 entries were read again and give the signed root."}, Facts: []parts.Fact{{Name: "Took", Text: "1.8 s"}}}
	bad.Result = &pages.VerifyResult{Notice: parts.Notice{Tone: "bad", Title: "The log was changed", Text: "Stop deciding, keep a copy of the folder, and compare with the last head you copied elsewhere."}, Faults: []string{"entry 18,402: the stored row gives another leaf than the tree", "head of 18,422 entries: the root differs"}}
	empty := pages.AuditView{Page: frame("Audit", "/audit"), Search: list.Search, Verify: "/audit/verify", Empty: &parts.Empty{Title: "Nothing matches", Next: &parts.Link{Text: "Clear the search", URL: "/audit"}}}
	entry := pages.EntryView{Page: frame("Entry 18,422", "/audit"), Back: parts.Link{Text: "Audit", URL: "/audit"}, Seq: "18,422", Action: "approval.decided",
		Facts:   []parts.Fact{{Name: "When", Time: minute}, {Name: "Who", Text: "Ana Ruiz"}, {Name: "Proved by", Text: "session, password"}, {Name: "Authority", Text: "role finance, rule large-refunds, policy default 3"}, {Name: "Subject", Link: &parts.Link{Text: "apr_71, revision 2", URL: "/approvals/apr_71"}}, {Name: "Digest", Digest: digest1}, {Name: "Outcome", Status: &parts.Status{Code: "good", Word: "approved"}}},
		Payload: &parts.JSON{Title: "Payload", Text: "{\"comment\":\"\",\"verdict\":\"approve\"}"}, Leaf: &parts.JSON{Title: "The bytes the log commits to", Text: "countersign.entry/1\n{\"action\":\"approval.decided\"}"},
		Proof: pages.Proof{Holds: true, Text: "It is included under the head of 18,422 entries, signed at 12:21.", Hashes: []string{digest2, digest3, digest1}, Head: &parts.JSON{Title: "Signed head", Text: "countersign/demo/default/1\n18422\nwHcV6j2fSLJhDf6DqUtcJ9gTDm+ilFvH7oHzVg2aQss=\n"}, Command: "console audit receipt apr_71"}}
	unproven := entry
	unproven.Proof = pages.Proof{Text: "The entry is not under any signed head yet. Look again in a second."}
	return []Exhibit{
		show("audit-empty", pages.Audit, empty), show("audit", pages.Audit, list), show("audit-verified", pages.Audit, good), show("audit-broken", pages.Audit, bad), deceive("audit", pages.Audit, bad),
		show("entry", pages.Entry, entry), show("entry-unproven", pages.Entry, unproven), deceive("entry", pages.Entry, entry),
	}
}

func definitions() []Exhibit {
	list := pages.DefinitionsView{Page: frame("Definitions", "/definitions"), Explain: "/definitions/explain", Problems: []string{"workflows/refund.yaml:14:9: unknown key “retires”; did you mean “retry”?"}, Groups: []pages.DefinitionGroup{
		{Title: "Workflows", Rows: []pages.DefinitionRow{{Name: "weekly-report", Version: 2, URL: "/definitions/workflow/weekly-report/2", Title: "Weekly engineering report", Digest: digest1, Since: days}, {Name: "refund", Version: 1, URL: "/definitions/workflow/refund/1", Title: "Refund a customer", Digest: digest2, Since: days}}},
		{Title: "Tools", Rows: []pages.DefinitionRow{{Name: "shop.refund", Version: 1, URL: "/definitions/tool/shop.refund/1", Title: "Refund an order", Risk: "high", Effect: "writes", Digest: digest3, Since: days}, {Name: "docs.collect", Version: 1, URL: "/definitions/tool/docs.collect/1", Title: "Collect documents", Risk: "low", Effect: "reads", Digest: digest1, Since: days}}},
		{Title: "Policies", Rows: []pages.DefinitionRow{{Name: "default", Version: 3, URL: "/definitions/policy/default/3", Digest: digest2, Since: hours}}}}}
	empty := pages.DefinitionsView{Page: frame("Definitions", "/definitions"), Groups: []pages.DefinitionGroup{{Title: "Workflows", Empty: "None. Put YAML files into the folder workflows and start again."}}}
	m := runMap("todo")
	for i := range m.Nodes {
		m.Nodes[i].State, m.Nodes[i].Word, m.Nodes[i].Passes = "todo", "", 0
	}
	for i := range m.Edges {
		m.Edges[i].Taken = false
	}
	workflow := pages.DefinitionView{Page: frame("weekly-report 2", "/definitions"), Back: parts.Link{Text: "Definitions", URL: "/definitions"}, Kind: "workflow", Name: "weekly-report", Version: 2, Title: "Weekly engineering report", Start: "/runs/new?workflow=weekly-report",
		Facts: []parts.Fact{{Name: "Digest", Digest: digest1}, {Name: "In force since", Time: days}, {Name: "Used by", Text: "3 open runs"}}, Versions: []parts.Link{{Text: "1", URL: "/definitions/workflow/weekly-report/1"}, {Text: "2"}}, Map: &m,
		Source: parts.JSON{Title: "Source", Text: "format: 1\nworkflow: weekly-report\nversion: 2\n", Open: true}, Compiled: &parts.JSON{Title: "Compiled form", Text: "{\"format\":1}"}}
	rules := pages.DefinitionView{Page: frame("default 3", "/definitions"), Back: workflow.Back, Kind: "policy", Name: "default", Version: 3, Facts: workflow.Facts, Source: workflow.Source,
		Rules: []pages.PolicyRule{{Name: "small-refunds", When: "tool == 'shop.refund' && params.amount <= 2000", Effect: "allow"}, {Name: "large-refunds", When: "tool == 'shop.refund' && params.amount > 50000", Effect: "approve", Text: "2 of finance, within 24 h; starts within 1 h"}, {Name: "no-friday", When: "now.getDayOfWeek() == 5", Effect: "deny"}, {Name: "everything else", Effect: "approve", Text: "1 of approver, within 72 h"}}}
	ask := pages.ExplainView{Page: frame("Who would have to approve this?", "/definitions"), Back: workflow.Back, Action: "/definitions/explain", Fields: []parts.Field{
		{Name: "tool", Label: "Tool", Kind: "choice", Required: true, Options: []parts.Option{{Value: "shop.refund", Text: "shop.refund 1", Selected: true}, {Value: "kb.publish", Text: "kb.publish 1"}}},
		{Name: "params", Label: "Parameters", Kind: "json", Required: true, Value: "{\"order_id\": \"8841\", \"amount\": 124000}", Rows: 5}, {Name: "on_behalf_of", Label: "On behalf of", Kind: "text"}}}
	answer := ask
	answer.Answer = &pages.ExplainAnswer{Verdict: parts.Status{Code: "approve", Word: "needs approval"}, Sentence: "Refund 1,240.00 EUR on order 8841", Policy: policy()}
	wrong := ask
	wrong.Error = &parts.Notice{Tone: "bad", Title: "The parameters do not fit the tool", Lines: []string{"/amount: this must be a whole number"}}
	return []Exhibit{
		show("definitions-empty", pages.Definitions, empty), show("definitions", pages.Definitions, list), deceive("definitions", pages.Definitions, list),
		show("definition-workflow", pages.Definition, workflow), show("definition-policy", pages.Definition, rules), deceive("definition", pages.Definition, workflow),
		show("explain", pages.Explain, ask), show("explain-answer", pages.Explain, answer), show("explain-wrong", pages.Explain, wrong), deceive("explain", pages.Explain, answer),
	}
}

func people() []Exhibit {
	boxes := []pages.RoleBox{{Value: "approver", Hint: "decides what no other rule names"}, {Value: "finance", Hint: "decides refunds", Checked: true}, {Value: "operator", Hint: "looks after runs"}, {Value: "auditor", Hint: "reads the log"}, {Value: "admin", Hint: "people and tokens"}}
	tokens := []pages.TokenRow{{Name: "billing-agent", Owner: "Mara Kline", Kind: "machine", Scopes: []string{"actions:propose", "runs:read"}, Expires: tomorrow, Status: parts.Status{Code: "active", Word: "active"}, Revoke: "/tokens/tok_1/revoke"}, {Name: "old", Owner: "Ben Okafor", Kind: "personal", Scopes: []string{"approvals:decide"}, Expires: days, Status: parts.Status{Code: "revoked", Word: "revoked"}}}
	v := pages.PeopleView{Page: frame("People", "/people"), Add: "/people", Roles: boxes, Tokens: tokens,
		Fields: []parts.Field{{Name: "name", Label: "Name", Kind: "text", Required: true}, {Name: "email", Label: "Email", Kind: "email", Required: true}, {Name: "password", Label: "First password", Kind: "password", Required: true, Complete: "new-password", Hint: "at least 12 characters; to be changed by the person"}},
		Rows: []pages.PersonRow{
			{ID: "usr_1", Name: "Ana Ruiz", Email: "ana@example.org", Roles: []string{"finance", "operator", "admin"}, Boxes: boxes, Status: parts.Status{Code: "active", Word: "active"}, Seen: now, You: true, RolesURL: "/people/usr_1/roles"},
			{ID: "usr_2", Name: "Ben Okafor", Email: "ben@example.org", Roles: []string{"finance"}, Boxes: boxes, Status: parts.Status{Code: "active", Word: "active"}, Seen: minutes, RolesURL: "/people/usr_2/roles", ActiveURL: "/people/usr_2/active", Deputy: "Lin Wei until Fri 4 Dec"},
			{ID: "usr_3", Name: "林薇 (Lin Wei)", Email: "lin@example.org", Status: parts.Status{Code: "disabled", Word: "disabled"}, RolesURL: "/people/usr_3/roles", ActiveURL: "/people/usr_3/active"}}}
	account := pages.AccountView{Page: frame("Account", ""), Facts: []parts.Fact{{Name: "Name", Text: "Ana Ruiz"}, {Name: "Email", Text: "ana@example.org"}, {Name: "Roles", Text: "finance, operator, admin"}}, SignOut: "/signout",
		Password: "/account/password", PasswordIn: []parts.Field{{Name: "old", Label: "Present password", Kind: "password", Required: true, Complete: "current-password"}, {Name: "new", Label: "New password", Kind: "password", Required: true, Complete: "new-password", Hint: "at least 12 characters"}, {Name: "again", Label: "New password again", Kind: "password", Required: true, Complete: "new-password"}},
		Sessions: []pages.SessionRow{{Where: "Firefox on Linux", From: "192.0.2.7", Began: hours, Seen: now, This: true}, {Where: "Safari on iPhone", From: "198.51.100.4", Began: days, Seen: hours, End: "/sessions/ses_2/end"}},
		Tokens:   tokens, Token: "/account/tokens", TokenIn: []parts.Field{{Name: "name", Label: "Name of the token", Kind: "text", Required: true}, {Name: "expires", Label: "Ends after days", Kind: "integer", Value: "30", Required: true}}, Scopes: []pages.RoleBox{{Value: "runs:read"}, {Value: "actions:propose"}}}
	secret := account
	secret.Secret = &pages.NewSecret{Name: "billing-agent", Secret: "cst_9fa31c07_example"}
	empty := pages.PeopleView{Page: frame("People", "/people"), Error: &parts.Notice{Tone: "bad", Title: "That email is taken", Text: "Nothing was added."}}
	return []Exhibit{
		show("people-empty", pages.People, empty), show("people", pages.People, v), deceive("people", pages.People, v),
		show("account", pages.Account, account), show("account-secret", pages.Account, secret), deceive("account", pages.Account, secret),
	}
}

func failures() []Exhibit {
	fail := func(status int, title, text, lost string, next ...parts.Link) pages.FailureView {
		return pages.FailureView{Page: frame(title, ""), Status: status, Title: title, Text: text, Lost: lost, Next: next, Reference: "req_5f20c1"}
	}
	home := parts.Link{Text: "For me", URL: "/inbox"}
	conflict := fail(409, "Somebody else decided first", "Lin Wei rejected this at 12:21: “The carrier pays this one.”", "Your decision was not recorded.", parts.Link{Text: "Open the request", URL: "/approvals/apr_71"}, home)
	conflict.Facts = []parts.Fact{{Name: "Decided by", Text: "Lin Wei"}, {Name: "When", Time: minute}}
	conflict.Draft = "Approved, please hurry."
	invalid := fail(422, "Some of this cannot be used", "Nothing was saved. What you typed is on the page before.", "Nothing was changed.", home)
	invalid.Faults = []pages.Fault{{Where: "/amount", What: "this must be a whole number"}}
	all := conflict
	all.Faults, all.Diff = invalid.Faults, &parts.Values{Rows: params().Rows[:2]}
	gone := fail(404, "There is nothing here", "It may have been mistyped, or you may not see what is there.", "", home)
	gone.Reference = ""
	out := fail(403, "You may not see this", "Reading the audit log needs the role auditor. An administrator can give it to you: Ana Ruiz.", "", home)
	return []Exhibit{
		show("failure-403", pages.Failure, out), show("failure-404", pages.Failure, gone), show("failure-409", pages.Failure, conflict),
		show("failure-413", pages.Failure, fail(413, "That is too large", "A form may be 1,048,576 bytes long.", "Nothing was changed; go back and shorten it.", home)),
		show("failure-422", pages.Failure, invalid),
		show("failure-429", pages.Failure, fail(429, "Too many tries", "Wait one minute and try again.", "Nothing was changed.", home)),
		show("failure-500", pages.Failure, fail(500, "Something failed on our side", "It was written down. If it stays, give an operator the reference.", "Nothing was changed.", home)),
		deceive("failure", pages.Failure, all),
	}
}
