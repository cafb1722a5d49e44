package desk_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"countersign/internal/audit/receipt"
	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/internal/server"
)

// caller is a program with a token, as curl would be.
type caller struct {
	t     *testing.T
	base  string
	token string
}

// answer is one response with its body read.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

// serve starts the console's listener over the world.
func (w *world) serve() string {
	w.t.Helper()
	l := httptest.NewUnstartedServer(nil)
	base := "http://" + l.Listener.Addr().String()
	s, err := server.New(server.Options{Desk: w.desk, Hub: w.inst.Hub, BaseURL: base, Version: "test", Logger: slog.New(slog.DiscardHandler)})
	w.must(err)
	l.Config.Handler = s.Handler()
	l.Start()
	w.t.Cleanup(l.Close)
	return base
}

// token makes a token that the person owns: a machine's with the scopes, or a
// personal one.
func (w *world) token(who string, personal bool, scopes ...string) string {
	w.t.Helper()
	secret, _, err := w.desk.CreateToken(w.t.Context(), desk.Terminal(), identity.NewToken{Owner: w.principal(who).Person, Name: "test of " + who,
		Scopes: scopes, Personal: personal, Life: time.Hour})
	w.must(err)
	return secret
}

// asIs follows no redirect.
var asIs = http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// send sends the body, if any, with headers given as name and value in turn.
func (c caller) send(method, path, body string, headers ...string) (a answer) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := asIs.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	a = answer{status: res.StatusCode, header: res.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &a.body) // a test that needs it looks inside
	return a
}

// must fails unless the answer has the status.
func (c caller) must(want int, a answer) answer {
	c.t.Helper()
	if a.status != want {
		c.t.Fatalf("status %d, want %d: %s", a.status, want, a.raw)
	}
	return a
}

// wantProblem fails unless the answer is problem+json of the code.
func (c caller) wantProblem(status int, code string, a answer) {
	c.t.Helper()
	if a.status != status || a.body["code"] != code {
		c.t.Errorf("answer %d %v, want %d %s: %s", a.status, a.body["code"], status, code, a.raw)
		return
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		c.t.Errorf("%s has Content-Type %q", code, got)
	}
	if a.body["status"] != float64(status) || a.body["title"] == "" || a.body["detail"] == "" || a.body["type"] == nil || a.body["reference"] == nil {
		c.t.Errorf("%s lacks a member of a problem: %s", code, a.raw)
	}
}

const proposal = `{"tool":"shop.refund","params":{"order_id":"4180","amount":12500,"currency":"EUR"},"reason":"The parcel arrived damaged.","model":"m-1"}`

func text(t *testing.T, a answer, member string) string {
	t.Helper()
	s, ok := a.body[member].(string)
	if !ok || s == "" {
		t.Fatalf("the answer has no %s: %s", member, a.raw)
	}
	return s
}

func TestAPI_FromProposalToReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	agent := caller{t, base, w.token("dev", false, "actions:propose", "approvals:read", "runs:read")}
	ana := caller{t, base, w.token("ana", true, "approvals:read", "approvals:decide", "audit:read")}

	proposed := agent.must(201, agent.send("POST", "/api/v1/actions", proposal, "Idempotency-Key", "k-1"))
	if got := text(t, proposed, "status"); got != "pending" {
		t.Fatalf("the action is %s, want pending: %s", got, proposed.raw)
	}
	if proposed.header.Get("Location") == "" {
		t.Error("a created action has no Location")
	}
	action := text(t, proposed, "id")

	again := agent.must(201, agent.send("POST", "/api/v1/actions", proposal, "Idempotency-Key", "k-1"))
	if text(t, again, "id") != action || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the same key again gave %s (replayed %q), want %s", text(t, again, "id"), again.header.Get("Idempotency-Replayed"), action)
	}
	agent.wantProblem(422, "idempotency_key_reused", agent.send("POST", "/api/v1/actions", strings.Replace(proposal, "12500", "12600", 1), "Idempotency-Key", "k-1"))

	list := ana.must(200, ana.send("GET", "/api/v1/approvals?status=pending&for=me", ""))
	if items, _ := list.body["items"].([]any); len(items) != 1 {
		t.Fatalf("%d requests are pending, want 1: %s", len(items), list.raw)
	}
	approval := text(t, proposed, "approval")
	shown := ana.must(200, ana.send("GET", "/api/v1/approvals/"+approval, ""))
	digest := text(t, shown, "digest")
	if !strings.Contains(shown.raw, `"amount":12500`) {
		t.Errorf("the number is not shown as it was sent: %s", shown.raw)
	}

	verdict := `{"verdict":"approve","digest":"` + digest + `"}`
	if a := agent.must(403, agent.send("POST", "/api/v1/approvals/"+approval+"/decision", verdict)); a.body["code"] != "not_a_person" {
		t.Errorf("a machine's token is refused with %v, want not_a_person", a.body["code"])
	}
	ana.wantProblem(409, "stale_digest", ana.send("POST", "/api/v1/approvals/"+approval+"/decision", `{"verdict":"approve","digest":"sha256:`+strings.Repeat("0", 64)+`"}`))
	ana.wantProblem(403, "not_eligible", ana.send("POST", "/api/v1/approvals/"+approval+"/decision", verdict)) // of high risk: not by token
	w.wantRefunds(0)
	_, err := w.desk.Decide(t.Context(), w.principal("ana"), approval, desk.Decide{Verdict: "approve", Digest: digest})
	w.must(err)

	var done answer
	w.eventually(func() (bool, string) {
		done = agent.must(200, agent.send("GET", "/api/v1/actions/"+action+"?wait=5s", ""))
		return done.body["status"] == "confirmed", done.raw
	})
	w.wantRefunds(1)
	if !strings.Contains(text(t, done, "advice"), "do not repeat") || !strings.Contains(asJSON(t, done.body["receipt"]), "re_") {
		t.Errorf("the confirmed action lacks advice or receipt: %s", done.raw)
	}
	file := ana.must(200, ana.send("GET", "/api/v1/audit/receipt/"+approval, ""))
	head := ana.must(200, ana.send("GET", "/api/v1/audit/head", ""))
	if _, err := receipt.Check([]byte(file.raw), text(t, head, "public_key")); err != nil {
		t.Errorf("the receipt as downloaded does not verify: %v", err)
	}
	ben := caller{t, base, w.token("ben", true, "approvals:read", "approvals:decide")}
	a := ben.send("POST", "/api/v1/approvals/"+approval+"/decision", `{"verdict":"reject","digest":"`+digest+`","comment":"Too late."}`)
	ben.wantProblem(409, "already_decided", a)
	if !strings.Contains(a.raw, "Ana") {
		t.Errorf("the loser is not told who decided: %s", a.raw)
	}
}

func TestAPI_BadInput_IsRefusedAndStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := caller{t, w.serve(), w.token("dev", false, "actions:propose", "approvals:read", "runs:read", "runs:write")}
	for what, body := range map[string]string{
		"nothing at all":         "",
		"no JSON":                `{`,
		"two values":             proposal + proposal,
		"an unknown field":       strings.Replace(proposal, `"model"`, `"modle"`, 1),
		"a duplicate key":        strings.Replace(proposal, `"model":"m-1"`, `"model":"m-1","reason":"Another."`, 1),
		"a duplicate key inside": strings.Replace(proposal, `"amount":12500`, `"amount":1,"amount":12500`, 1),
		"an unsafe integer":      strings.Replace(proposal, "12500", "9007199254740993", 1),
		"an unknown parameter":   strings.Replace(proposal, `"amount"`, `"force":true,"amount"`, 1),
		"text for a number":      strings.Replace(proposal, "12500", `"12500"`, 1),
		"another target":         strings.Replace(proposal, `"model"`, `"target":"order 1","model"`, 1),
		"no reason":              strings.Replace(proposal, "The parcel arrived damaged.", " ", 1),
		"an unknown tool":        strings.Replace(proposal, "shop.refund", "shop.refunds", 1),
		"a tool that reads":      `{"tool":"shop.order","params":{"order_id":"4180"},"reason":"Look."}`,
	} {
		a := agent.send("POST", "/api/v1/actions", body)
		if a.status != 400 && a.status != 422 && a.status != 404 {
			t.Errorf("%s: status %d, want 400, 404 or 422: %s", what, a.status, a.raw)
			continue
		}
		agent.wantProblem(a.status, text(t, a, "code"), a)
	}
	agent.wantProblem(422, "invalid_query", agent.send("GET", "/api/v1/approvals?statsu=pending", ""))
	runs := agent.must(200, agent.send("GET", "/api/v1/runs", ""))
	if items, _ := runs.body["items"].([]any); len(items) != 0 {
		t.Errorf("bad input started %d runs", len(items))
	}
	w.wantRefunds(0)
}

func TestAPI_WithoutAToken_NothingIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	session, err := w.desk.SignIn(t.Context(), identity.Credentials{Email: "ana@example.org", Password: "correct horse ana", Address: "127.0.0.1"}, "test")
	w.must(err)
	nobody := caller{t, base, ""}
	paths := []string{"/api/v1/approvals", "/api/v1/runs", "/api/v1/todo", "/api/v1/tools", "/api/v1/audit/entries", "/api/v1/events"}
	for _, path := range paths {
		nobody.wantProblem(401, "token_missing", nobody.send("GET", path, ""))
		for _, cookie := range []string{"countersign", "__Host-countersign"} {
			a := nobody.send("GET", path, "", "Cookie", cookie+"="+session)
			nobody.wantProblem(401, "token_missing", a)
		}
	}
	wrong := caller{t, base, "cst_" + strings.Repeat("x", 40)}
	if a := wrong.send("GET", "/api/v1/runs", ""); a.status != 401 {
		t.Errorf("an unknown token gets %d, want 401", a.status)
	}
	asBearer := caller{t, base, session}
	if a := asBearer.send("GET", "/api/v1/runs", ""); a.status != 401 {
		t.Errorf("a session as a bearer token gets %d, want 401", a.status)
	}
	reader := caller{t, base, w.token("dev", false, "runs:read")}
	reader.wantProblem(403, "missing_scope", reader.send("POST", "/api/v1/actions", proposal))
}

// A list with nothing in it is a list: what reads it need not know null.
func TestAPI_EmptyList_IsAList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	reader := caller{t, base, w.token("ana", true, "runs:read", "approvals:read", "operate")}
	auditor := caller{t, base, w.token("chloe", true, "audit:read")}
	lists := map[string]caller{"runs": reader, "effects": reader, "approvals": reader, "todo": reader, "questions": reader, "audit/entries?action=nothing": auditor}
	for path, reader := range lists {
		a := reader.must(200, reader.send("GET", "/api/v1/"+path, ""))
		if items, list := a.body["items"].([]any); !list || len(items) != 0 {
			t.Errorf("%s: %s, want an empty list", path, a.raw)
		}
	}
}

// Who may only propose reads what its owner proposed, and nothing tells it
// that there is anything else.
func TestAPI_ProposerReadsItsOwnActionsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	mine := caller{t, base, w.token("dev", false, "actions:propose")}
	sibling := caller{t, base, w.token("dev", false, "actions:propose")}
	other := caller{t, base, w.token("ana", false, "actions:propose")}
	reader := caller{t, base, w.token("ana", false, "runs:read")}
	action := text(t, mine.must(201, mine.send("POST", "/api/v1/actions", proposal)), "id")

	for _, c := range []caller{mine, sibling, reader} {
		c.must(200, c.send("GET", "/api/v1/actions/"+action, ""))
	}
	none := other.send("GET", "/api/v1/actions/act_none", "")
	for path, body := range map[string]string{"/api/v1/actions/" + action: "", "/api/v1/actions/" + action + "?wait=1s": "", "/api/v1/actions/" + action + "/withdraw": `{"reason":"Mine."}`} {
		method := "GET"
		if body != "" {
			method = "POST"
		}
		a := other.send(method, path, body)
		other.wantProblem(404, "not_found", a)
		if a.body["detail"] != none.body["detail"] {
			t.Errorf("%s: another's action is refused with %q, one that does not exist with %q", path, a.body["detail"], none.body["detail"])
		}
	}
	if shown := mine.must(200, mine.send("GET", "/api/v1/actions/"+action, "")); shown.body["status"] != "pending" {
		t.Errorf("the action is %v, want still pending", shown.body["status"])
	}
}

// A run key of somebody else's run is in use, and that is all a caller learns
// who may not read runs: the same answer with the same input and with another.
func TestAPI_RunKeyOfAnother_TellsNothingOfTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.serve()
	start := func(amount string) string {
		return `{"workflow":"refund","run_key":"order-4180","input":{"order_id":"4180","amount":` + amount + `,"why":"It arrived damaged."}}`
	}
	mine := caller{t, base, w.token("dev", false, "runs:write")}
	other := caller{t, base, w.token("ana", false, "runs:write")}
	reader := caller{t, base, w.token("ana", false, "runs:write", "runs:read")}
	run := text(t, mine.must(201, mine.send("POST", "/api/v1/runs", start("12500"))), "id")

	if again := mine.must(201, mine.send("POST", "/api/v1/runs", start("12500"))); text(t, again, "id") != run {
		t.Errorf("the same key of the same owner gave %s, want %s", text(t, again, "id"), run)
	}
	if again := reader.must(201, reader.send("POST", "/api/v1/runs", start("12500"))); text(t, again, "id") != run {
		t.Errorf("who may read runs got %s, want %s", text(t, again, "id"), run)
	}
	var said []any
	for _, amount := range []string{"12500", "12600"} {
		a := other.send("POST", "/api/v1/runs", start(amount))
		other.wantProblem(409, "run_key_taken", a)
		for _, secret := range []string{run, "Dev", "12500", "damaged", "refund"} {
			if strings.Contains(a.raw, secret) {
				t.Errorf("the refusal tells %q: %s", secret, a.raw)
			}
		}
		said = append(said, a.body["detail"])
	}
	if said[0] != said[1] {
		t.Errorf("the refusals differ with the input: %q", said)
	}
}
