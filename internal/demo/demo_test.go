package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"countersign/internal/demo/standin"
	"countersign/internal/desk"
	"countersign/internal/engine"

	"github.com/google/go-cmp/cmp"
)

// TestMain lets the test program be the one that restarts stand-in services,
// as the console is outside tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "stand-ins" && os.Args[2] == "restart" {
		if err := restart(os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func restart(args []string) error {
	given := map[string]string{}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		if !joined && i+1 < len(args) {
			i++
			value = args[i]
		}
		given[name] = value
	}
	drain, err := time.ParseDuration(given["--drain"] + "s")
	if err != nil {
		return err
	}
	ledger, err := standin.OpenLedger(given["--data"])
	if err != nil {
		return err
	}
	e, err := ledger.Restart(given["--service"], drain, os.Getenv("COUNTERSIGN_IDEMPOTENCY_KEY"))
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s\n", e.Body)
	return err
}

// open opens a demo over dir with its desk started. The returned function
// stops and closes it.
func open(t *testing.T, dir string) (*Demo, func()) {
	t.Helper()
	d, err := Open(t.Context(), Options{Dir: dir, Every: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Instance.Desk.Start(t.Context()); err != nil {
		t.Fatal(errors.Join(err, d.Close()))
	}
	return d, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(d.Instance.Desk.Stop(ctx), d.Close()); err != nil {
			t.Error(err)
		}
	}
}

// eventually polls until ok says so.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stories lists the runs by the order in which they began: what they are
// about and where they stand.
func stories(t *testing.T, d *Demo) []string {
	t.Helper()
	page, err := d.Instance.Desk.Runs(t.Context(), desk.Terminal(), desk.RunQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range page.Items {
		out = append([]string{r.Workflow + " " + r.Status}, out...)
	}
	return out
}

func TestDemo_EverySeedReachesWhatItIsThereToShow(t *testing.T) {
	t.Parallel()
	d, stop := open(t, t.TempDir())
	defer stop()
	if err := d.Seed(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the outcome of one restart is unknown", func() bool {
		all, err := d.Instance.Desk.Attention(t.Context(), desk.Terminal())
		if err != nil {
			t.Fatal(err)
		}
		return len(all) == 1 && all[0].Cause == engine.CauseUnknown
	})
	want := []string{"weekly-report waiting_approval", "refund completed", "refund completed", "refund waiting_approval", "refund waiting_approval",
		"restart-service waiting_approval", "action-shop-refund waiting_approval", "action-ops-restart blocked"}
	if diff := cmp.Diff(want, stories(t, d)); diff != "" {
		t.Error(diff)
	}
	counts := map[string]int{}
	ledger, err := standin.OpenLedger(d.Instance.Config.Values["stand_ins"])
	if err != nil {
		t.Fatal(err)
	}
	effects, err := ledger.Effects()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range effects {
		counts[e.Kind]++
	}
	if diff := cmp.Diff(map[string]int{"refund": 2}, counts); diff != "" {
		t.Errorf("what really happened: %s", diff)
	}
}

func TestDemo_TheRefundWithALostAnswerWasFoundByAsking(t *testing.T) {
	t.Parallel()
	d, stop := open(t, t.TempDir())
	defer stop()
	for _, s := range seeds() {
		if s.key != keyLost {
			continue
		}
		if err := d.plant(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	effects, err := d.Instance.Desk.RunEffects(t.Context(), desk.Terminal(), "key:"+keyLost)
	if err != nil {
		t.Fatal(err)
	}
	if len(effects.Items) != 1 || effects.Items[0].Status != engine.Confirmed || effects.Items[0].Evidence != "The target was asked." || effects.Items[0].Attempts != 1 {
		t.Errorf("effects %+v", effects.Items)
	}
}

func TestDemo_TheAgentStopsAskingWhenEnoughWaits(t *testing.T) {
	t.Parallel()
	d, stop := open(t, t.TempDir())
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Agent(ctx) }()
	eventually(t, "as many wait as may", func() bool {
		n, err := d.pending(t.Context())
		return err == nil && n == pendingMax
	})
	cancel()
	<-done
	for _, s := range stories(t, d) {
		if strings.HasSuffix(s, engine.Failed) {
			t.Errorf("an errand cannot work: %s", s)
		}
	}
}

func TestDemo_EveryErrandFitsItsToolAndIsTheSameAgain(t *testing.T) {
	t.Parallel()
	d, stop := open(t, t.TempDir())
	defer stop()
	for n := range 3 * len(ideas) {
		e, err := d.errand(n)
		if err != nil {
			t.Fatal(err)
		}
		again, err := d.errand(n)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, again, cmp.AllowUnexported(errand{})); diff != "" {
			t.Error(diff)
		}
		if e.tool == "" {
			e.tool = map[string]string{"refund": "shop.refund", "restart-service": "ops.restart"}[e.workflow]
			if e.tool == "" {
				continue
			}
			delete(e.input, "why")
			e.params = e.input
			if e.workflow == "refund" {
				e.params["currency"] = "EUR"
			}
		}
		params, err := json.Marshal(e.params)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Instance.Desk.Explain(t.Context(), d.cast.agent, desk.Explain{Tool: e.tool, Params: params}); err != nil {
			t.Errorf("errand %d: %v", n, err)
		}
	}
}

func TestDemo_ItsFolderWorksAgainAtTheNextStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, stop := open(t, dir)
	for _, s := range seeds()[:2] {
		if err := first.plant(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	before := stories(t, first)
	stop()
	policy := filepath.Join(dir, "policies", "default.yaml")
	if err := os.WriteFile(policy, append(read(t, policy), "# mine\n"...), 0o644); err != nil {
		t.Fatal(err)
	}

	second, stop := open(t, dir)
	defer stop()
	for _, s := range seeds()[:2] {
		if err := second.plant(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, stories(t, second)); diff != "" {
		t.Errorf("the stories were told twice: %s", diff)
	}
	people, err := second.Instance.Desk.People(t.Context(), desk.Terminal())
	if err != nil || len(people) != len(accounts()) {
		t.Errorf("%d people, %v", len(people), err)
	}
	for name, secret := range first.Tokens {
		if _, err := second.Instance.Desk.TokenPrincipal(t.Context(), secret); err == nil || second.Tokens[name] == secret {
			t.Errorf("the token %s of the first start still works", name)
		}
	}
	if !strings.HasSuffix(string(read(t, policy)), "# mine\n") {
		t.Error("a changed file was overwritten")
	}
	if info, err := os.Stat(filepath.Join(dir, tokenFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret's file: %v %v", info.Mode(), err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDemo_AccountsSignInAndTokensWork(t *testing.T) {
	t.Parallel()
	d, stop := open(t, t.TempDir())
	defer stop()
	for _, a := range d.Accounts {
		p, err := d.Instance.Desk.TerminalPrincipal(t.Context(), a.Email, a.Password)
		if err != nil {
			t.Errorf("%s: %v", a.Email, err)
		}
		if diff := cmp.Diff(a.Roles, p.Roles); diff != "" {
			t.Errorf("%s: %s", a.Email, diff)
		}
	}
	for name, kind := range map[string]string{"agent": "machine", "operator": "person"} {
		p, err := d.Instance.Desk.TokenPrincipal(t.Context(), d.Tokens[name])
		if err != nil || p.Kind != kind {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func TestDemo_LeavesNothingRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	_, stop := open(t, t.TempDir())
	stop()
	eventually(t, "every goroutine ended", func() bool { return runtime.NumGoroutine() <= before })
}

func TestDemo_UnknownDocumentsAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.Context(), Options{Dir: t.TempDir(), Documents: "/nowhere/at/all"}); err == nil || !strings.Contains(err.Error(), "--documents") {
		t.Errorf("got %v", err)
	}
}
