package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/approvals"
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
		return len(all) == 1 && all[0].Cause == engine.CauseUnknown && slices.Contains(stories(t, d), "action-ops-restart blocked")
	})
	want := []string{"weekly-report waiting_approval", "refund completed", "refund completed", "refund waiting_approval", "refund waiting_approval",
		"restart-service waiting_approval", "action-shop-refund waiting_approval", "action-ops-restart blocked"}
	if diff := cmp.Diff(want, stories(t, d)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"refund": 2}, happened(t, d)); diff != "" {
		t.Errorf("what really happened: %s", diff)
	}
}

// happened counts what the stand-ins did, by kind.
func happened(t *testing.T, d *Demo) map[string]int {
	t.Helper()
	ledger, err := standin.OpenLedger(d.Instance.Config.Values["stand_ins"])
	if err != nil {
		t.Fatal(err)
	}
	effects, err := ledger.Effects()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, e := range effects {
		counts[e.Kind]++
	}
	return counts
}

func TestDemo_AnaCanBringEverythingToItsEnd(t *testing.T) {
	t.Parallel()
	d, stop := open(t, t.TempDir())
	defer stop()
	for _, s := range seeds() {
		if s.key == keyUnknown {
			continue
		}
		if err := d.plant(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	ana, err := d.Instance.Desk.TerminalPrincipal(t.Context(), "ana@demo.example", Passphrase)
	if err != nil {
		t.Fatal(err)
	}
	decided := 0
	eventually(t, "nothing waits", func() bool {
		inbox, err := d.Instance.Desk.Inbox(t.Context(), ana)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range inbox.Items {
			if _, err := d.Instance.Desk.Decide(t.Context(), ana, r.ID, desk.Decide{Verdict: approvals.VerdictApprove, Digest: r.Digest}); err != nil {
				t.Fatal(err)
			}
			decided++
		}
		return decided == 5
	})
	eventually(t, "every run is completed", func() bool {
		return !slices.ContainsFunc(stories(t, d), func(s string) bool { return !strings.HasSuffix(s, engine.Completed) })
	})
	if diff := cmp.Diff(map[string]int{"refund": 5, "restart": 1}, happened(t, d)); diff != "" {
		t.Errorf("what really happened: %s", diff)
	}
	page := string(read(t, filepath.Join(d.Instance.Config.Values["kb"], "reports", "2026-W48.md")))
	if !strings.Contains(page, "Drawn from 35 documents") {
		t.Errorf("the page begins %.80q", page)
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
