package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/examples"
	"countersign/internal/demo/standin"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/internal/instance"
	"countersign/internal/server"
)

// patience is how long a test waits for what must happen by itself.
const patience = 15 * time.Second

// staff are the people of every test and their roles.
var staff = map[string][]string{
	"ana": {"approver", "finance", "operator"}, "ben": {"approver", "finance"},
	"chloe": {"auditor", "admin"}, "dev": {"builder"},
}

// site is a whole console over a folder of its own, and the shop outside.
type site struct {
	t      *testing.T
	inst   *instance.Instance
	server *server.Server
	ledger *standin.Ledger
	tokens map[string]string // session tokens by name
}

func newSite(t *testing.T) *site { return newSiteAt(t, "http://localhost:8080") }

func newSiteAt(t *testing.T, baseURL string) *site {
	t.Helper()
	s := &site{t: t, tokens: map[string]string{}}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, part := range []string{"workflows", "tools", "policies", "kb", "documents"} {
		sub, err := fs.Sub(examples.Files, part)
		s.must(err)
		s.must(os.CopyFS(in(part), sub))
	}
	var err error
	s.ledger, err = standin.OpenLedger(in("stand-ins"))
	s.must(err)
	shop := httptest.NewServer(standin.NewServer(s.ledger, "the-shop-token").Handler())
	t.Cleanup(shop.Close)
	s.must(os.WriteFile(in("shop-token"), []byte("the-shop-token\n"), 0o600))
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	s.inst, err = instance.Open(t.Context(), instance.Options{Dir: dir, Drive: true, Holder: "test", Logger: logger, Config: instance.Config{
		Workflows: in("workflows"), Tools: in("tools"), Policies: in("policies"),
		Values:  map[string]string{"shop": shop.URL + "/shop", "planner": shop.URL + "/planner", "documents": in("documents"), "kb": in("kb"), "stand_ins": in("stand-ins")},
		Secrets: map[string]instance.Secret{"SHOP_TOKEN": {File: in("shop-token")}},
		Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	s.must(err)
	t.Cleanup(s.close)
	_, err = s.inst.LoadDefinitions(t.Context())
	s.must(err)
	for name, roles := range staff {
		_, err := s.inst.Desk.AddPerson(t.Context(), desk.Terminal(), identity.NewPerson{Email: name + "@example.org", Name: name, Password: "correct horse " + name, Roles: roles})
		s.must(err)
	}
	s.must(s.inst.Desk.Start(t.Context()))
	s.server, err = server.New(server.Options{Desk: s.inst.Desk, Hub: s.inst.Hub, BaseURL: baseURL, Version: "test", Logger: logger})
	s.must(err)
	return s
}

func (s *site) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.inst.Desk.Stop(ctx); err != nil {
		s.t.Errorf("stop the desk: %v", err)
	}
	if err := s.inst.Close(); err != nil {
		s.t.Errorf("close the instance: %v", err)
	}
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("unexpected error: %v", err)
	}
}

// send sends one request as somebody, or as nobody for "". A form makes it a
// POST of the console's own page; headers come in pairs.
func (s *site) send(who, method, path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = "localhost:8080"
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if who != "" {
		r.AddCookie(&http.Cookie{Name: "countersign", Value: s.token(who)})
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if who != "" && path == "/events" { // a stream ends with its client
		ctx, leave := context.WithCancel(r.Context())
		leave()
		r = r.WithContext(ctx)
	}
	w := httptest.NewRecorder()
	s.server.Handler().ServeHTTP(w, r)
	return w
}

func (s *site) get(who, path string) *httptest.ResponseRecorder {
	return s.send(who, http.MethodGet, path, nil)
}

func (s *site) post(who, path string, pairs ...string) *httptest.ResponseRecorder {
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return s.send(who, http.MethodPost, path, form)
}

// token is the session of somebody, who signs in through the form once.
func (s *site) token(who string) string {
	s.t.Helper()
	if s.tokens[who] == "" {
		w := s.post("", "/signin", "email", who+"@example.org", "password", "correct horse "+who)
		cookies := w.Result().Cookies()
		if w.Code != http.StatusSeeOther || len(cookies) != 1 {
			s.t.Fatalf("%s signs in: status %d, %d cookies", who, w.Code, len(cookies))
		}
		s.tokens[who] = cookies[0].Value
	}
	return s.tokens[who]
}

func (s *site) principal(name string) identity.Principal {
	s.t.Helper()
	p, err := s.inst.Desk.SessionPrincipal(s.t.Context(), s.token(name))
	s.must(err)
	return p
}

// refund starts a refund as dev, and returns its request once it waits.
func (s *site) refund(why string) desk.Approval { return s.refundOf(12_500, why) }

func (s *site) refundOf(amount int, why string) desk.Approval {
	s.t.Helper()
	input, err := json.Marshal(map[string]any{"order_id": "4180", "amount": amount, "why": why})
	s.must(err)
	run, _, err := s.inst.Desk.StartRun(s.t.Context(), s.principal("dev"), desk.StartRun{Workflow: "refund", Input: input})
	s.must(err)
	s.reach(run, engine.WaitingApproval)
	page, err := s.inst.Desk.Approvals(s.t.Context(), s.principal("ana"), desk.ApprovalQuery{Run: run.ID})
	s.must(err)
	if len(page.Items) != 1 {
		s.t.Fatalf("the run has %d requests, want 1", len(page.Items))
	}
	return s.request(page.Items[0].ID)
}

func (s *site) request(id string) desk.Approval {
	s.t.Helper()
	a, err := s.inst.Desk.Approval(s.t.Context(), s.principal("ana"), id)
	s.must(err)
	return a
}

// reach waits until the run is in the status.
func (s *site) reach(run engine.Run, status string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); run.Status != status; time.Sleep(10 * time.Millisecond) {
		var err error
		run, err = s.inst.Desk.Run(s.t.Context(), desk.Terminal(), string(run.ID))
		s.must(err)
		if time.Now().After(deadline) {
			s.t.Fatalf("the run is %s, want %s", run.Status, status)
		}
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

// readable is the text of a page.
func readable(w *httptest.ResponseRecorder) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(w.Body.String(), " "))), " ")
}

// want fails unless the answer has the status and contains the texts.
func (s *site) want(what string, w *httptest.ResponseRecorder, status int, texts ...string) {
	s.t.Helper()
	if w.Code != status {
		s.t.Fatalf("%s: status %d, want %d\n%.600s", what, w.Code, status, readable(w))
	}
	for _, text := range texts {
		if !strings.Contains(w.Body.String(), html.EscapeString(text)) && !strings.Contains(readable(w), text) {
			s.t.Errorf("%s: the page lacks %q", what, text)
		}
	}
}

// size is how many entries the log has.
func (s *site) size() string {
	s.t.Helper()
	p, err := s.inst.Desk.Posture(s.t.Context())
	s.must(err)
	return fmt.Sprint(p.Entries)
}
