package desk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/examples"
	"countersign/internal/audit"
	"countersign/internal/demo/standin"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/internal/instance"
	"countersign/internal/problem"
	"countersign/internal/testkit"
)

// patience is how long a test waits for what must happen by itself.
const patience = 15 * time.Second

// staff are the people of every test and their roles. Dev starts everything.
var staff = map[string][]string{
	"ana": {"approver", "finance", "operator"}, "ben": {"approver", "finance"},
	"chloe": {"auditor", "admin"}, "dev": {"builder"},
}

// template is a closed data folder with the staff in it, made once: hashing
// passwords takes longer than most tests.
var template = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "desk-template-")
	if err != nil {
		return "", err
	}
	i, err := instance.Open(context.Background(), instance.Options{Dir: dir, Config: instance.Config{}, Drive: true, Holder: "template"})
	if err != nil {
		return dir, err
	}
	defer i.Close()
	for name, roles := range staff {
		_, err := i.Desk.AddPerson(context.Background(), desk.Terminal(), identity.NewPerson{
			Email: name + "@example.org", Name: strings.ToUpper(name[:1]) + name[1:], Password: "correct horse " + name, Roles: roles})
		if err != nil {
			return dir, err
		}
	}
	return dir, i.Close()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := template(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// world is one data folder, the shop outside of it, and the instance that is
// open over the folder, if any.
type world struct {
	t      *testing.T
	dir    string
	shop   *standin.Server
	calls  atomic.Int64 // requests that reached it
	ledger *standin.Ledger
	config instance.Config
	logger *slog.Logger  // nil: errors go to the test's own
	ahead  time.Duration // how far the instance's clock is, from its opening on
	inst   *instance.Instance
	desk   *desk.Desk
}

// newWorld makes the folder and the shop, and opens and starts the instance.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	from, err := template()
	w.must(err)
	w.must(os.CopyFS(w.dir, os.DirFS(from)))
	for _, part := range []string{"workflows", "tools", "policies", "kb", "documents"} {
		sub, err := fs.Sub(examples.Files, part)
		w.must(err)
		w.must(os.CopyFS(filepath.Join(w.dir, part), sub))
	}
	w.ledger, err = standin.OpenLedger(filepath.Join(w.dir, "stand-ins"))
	w.must(err)
	w.shop = standin.NewServer(w.ledger, "the-shop-token")
	w.must(os.WriteFile(filepath.Join(w.dir, "shop-token"), []byte("the-shop-token\n"), 0o600))
	outside := w.shop.Handler()
	h := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.calls.Add(1)
		outside.ServeHTTP(rw, r)
	}))
	t.Cleanup(h.Close)
	in := func(name string) string { return filepath.Join(w.dir, name) }
	w.config = instance.Config{Workflows: in("workflows"), Tools: in("tools"), Policies: in("policies"),
		Values: map[string]string{"shop": h.URL + "/shop", "planner": h.URL + "/planner", "documents": in("documents"), "kb": in("kb"),
			"stand_ins": in("stand-ins")},
		Secrets: map[string]instance.Secret{"SHOP_TOKEN": {File: in("shop-token")}},
		Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	t.Cleanup(w.close)
	w.open()
	w.start()
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("unexpected error: %v", err)
	}
}

// open opens the folder with its definitions; nothing is driven yet.
func (w *world) open() {
	w.t.Helper()
	var err error
	logger := w.logger
	if logger == nil {
		logger = slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	}
	w.inst, err = instance.Open(w.t.Context(), instance.Options{Dir: w.dir, Config: w.config, Drive: true, Holder: "test", Logger: logger,
		Now: func() time.Time { return time.Now().Add(w.ahead) }})
	w.must(err)
	w.desk = w.inst.Desk
	_, err = w.inst.LoadDefinitions(w.t.Context())
	w.must(err)
}

// beside opens the same folder a second time, as the command line does beside
// a running server.
func (w *world) beside() *instance.Instance {
	w.t.Helper()
	i, err := instance.Open(w.t.Context(), instance.Options{Dir: w.dir, Config: w.config})
	w.must(err)
	w.t.Cleanup(func() {
		if err := i.Close(); err != nil {
			w.t.Errorf("close the second instance: %v", err)
		}
	})
	return i
}

// start lets the engine drive and the sweeper sweep.
func (w *world) start() {
	w.t.Helper()
	w.must(w.desk.Start(w.t.Context()))
}

// close stops and closes what is open, as the end of the process would.
func (w *world) close() {
	if w.inst == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.desk.Stop(ctx); err != nil {
		w.t.Errorf("stop the desk: %v", err)
	}
	if err := w.inst.Close(); err != nil {
		w.t.Errorf("close the instance: %v", err)
	}
	w.inst, w.desk = nil, nil
}

// idle closes the folder and opens it again with an engine that stands still.
func (w *world) idle() {
	w.t.Helper()
	w.close()
	w.open()
}

// tamper runs statements on the database as somebody with a shell, while the
// instance is closed, and opens and starts it again.
func (w *world) tamper(statements ...string) {
	w.t.Helper()
	w.close()
	testkit.Outsider(w.t, filepath.Join(w.dir, instance.DatabaseFile), statements...)
	w.open()
	w.start()
}

// policy puts another version of the default policy in force.
func (w *world) policy(version int, rules string) {
	w.t.Helper()
	text := fmt.Sprintf("format: 1\npolicy: default\nversion: %d\non_error:\n  groups: [{role: admin, need: 1}]\nrules:\n%s", version, rules)
	w.must(os.WriteFile(filepath.Join(w.dir, "policies", "default.yaml"), []byte(text), 0o644))
	_, err := w.inst.LoadDefinitions(w.t.Context())
	w.must(err)
}

// principal is the person, signed in at a browser, with the roles of now.
func (w *world) principal(name string) identity.Principal {
	w.t.Helper()
	p, err := w.desk.PersonByEmail(w.t.Context(), desk.Terminal(), name+"@example.org")
	w.must(err)
	return identity.Principal{Tenant: desk.Tenant, Kind: identity.KindPerson, Person: p.ID, Name: p.Name, Email: p.Email, Roles: p.Roles,
		How: "password", Channel: "browser"}
}

// refund starts a refund of the amount on an order, as dev, and returns the
// run once it is in the status.
func (w *world) refund(amount int, status string) engine.Run {
	w.t.Helper()
	return w.refundBy("dev", amount, status)
}

func (w *world) refundBy(who string, amount int, status string) engine.Run {
	w.t.Helper()
	input := fmt.Sprintf(`{"order_id":"4180","amount":%d,"why":"The parcel arrived damaged."}`, amount)
	run, _, err := w.desk.StartRun(w.t.Context(), w.principal(who), desk.StartRun{Workflow: "refund", Input: json.RawMessage(input)})
	w.must(err)
	return w.waitFor(run, status)
}

// waitFor returns the run as soon as it is in the status.
func (w *world) waitFor(run engine.Run, status string) (now engine.Run) {
	w.t.Helper()
	w.eventually(func() (bool, string) {
		var err error
		now, err = w.desk.Run(w.t.Context(), desk.Terminal(), string(run.ID))
		w.must(err)
		return now.Status == status, fmt.Sprintf("run is %s (%v), want %s", now.Status, now.Error, status)
	})
	return now
}

// eventually polls until the condition holds, and fails with its last word.
func (w *world) eventually(holds func() (bool, string)) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		ok, why := holds()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("after %s: %s", patience, why)
		}
	}
}

// request is the approval request of the run as the person sees it.
func (w *world) request(who string, run engine.Run) desk.Approval {
	w.t.Helper()
	page, err := w.desk.Approvals(w.t.Context(), w.principal(who), desk.ApprovalQuery{Run: run.ID})
	w.must(err)
	if len(page.Items) != 1 {
		w.t.Fatalf("run %s has %d requests, want 1", run.ID, len(page.Items))
	}
	a, err := w.desk.Approval(w.t.Context(), w.principal(who), page.Items[0].ID)
	w.must(err)
	return a
}

// decide decides on what the person sees now.
func (w *world) decide(who, verdict string, a desk.Approval) (desk.Decided, error) {
	w.t.Helper()
	return w.desk.Decide(w.t.Context(), w.principal(who), a.ID, desk.Decide{Verdict: verdict, Digest: a.Digest, Comment: "Looked at it."})
}

// approve must succeed.
func (w *world) approve(who string, a desk.Approval) desk.Decided {
	w.t.Helper()
	d, err := w.decide(who, "approve", a)
	w.must(err)
	return d
}

// approvedAtRest is a refund of the amount that Ana approved while nothing
// was driven, so that it is approved and not sent.
func (w *world) approvedAtRest(amount int) (engine.Run, desk.Approval) {
	w.t.Helper()
	run := w.refund(amount, engine.WaitingApproval)
	w.idle()
	a := w.request("ana", run)
	if d := w.approve("ana", a); d.Status != "approved" {
		w.t.Fatalf("after Ana the request is %s, want approved", d.Status)
	}
	return run, w.request("ana", run)
}

// refunds counts what really happened at the shop.
func (w *world) refunds() (n int) {
	w.t.Helper()
	past, err := w.ledger.Effects()
	w.must(err)
	for _, e := range past {
		if e.Kind == "refund" {
			n++
		}
	}
	return n
}

func (w *world) wantRefunds(want int) {
	w.t.Helper()
	if got := w.refunds(); got != want {
		w.t.Errorf("the shop refunded %d times, want %d", got, want)
	}
}

// entries are the audit entries of the action on the subject, oldest first.
func (w *world) entries(action, subject string) (out []audit.Entry) {
	w.t.Helper()
	page, err := w.desk.Entries(w.t.Context(), w.principal("chloe"), desk.EntryQuery{Action: action, Subject: subject, Limit: 200})
	w.must(err)
	for i := len(page.Items) - 1; i >= 0; i-- {
		out = append(out, page.Items[i])
	}
	return out
}

// wantProblem fails unless err is a problem of the code, which is returned.
func (w *world) wantProblem(err error, code string) *problem.Error {
	w.t.Helper()
	if !problem.HasCode(err, code) {
		w.t.Fatalf("error = %v (code %s), want code %s", err, codeOf(err), code)
	}
	return problem.From(err)
}

func codeOf(err error) string {
	if err == nil {
		return "none"
	}
	return problem.From(err).Code
}
