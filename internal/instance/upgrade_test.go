package instance_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/internal/audit/receipt"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/internal/instance"
	"countersign/internal/testkit"
)

// The first folder: when it was left, whose it is, and what is sealed in it.
var leftAt = time.Date(2026, 12, 1, 9, 16, 0, 0, time.UTC)

const (
	owner  = "ana@example.org"
	canary = "first-slice-canary-4711"
)

// TestUpgrade_RunsOfTheFirstFolderFinish opens the folder that testdata/README.md
// describes with this program, two hours after it was left, and does what its
// owner would have done. Every run ends, and the log still verifies.
func TestUpgrade_RunsOfTheFirstFolderFinish(t *testing.T) {
	f := upgraded(t)
	f.must(f.Desk.Check(t.Context()))
	for _, key := range []string{"waits", "sealed", "crashed", "presents"} {
		f.approve(key)
		f.reach(key, engine.Completed)
	}
	f.reach("approved", engine.Completed)
	f.reach("sleeps", engine.Completed)

	_, err := f.Desk.Answer(t.Context(), f.ana(), "key:asks", desk.Answer{Step: "what", Pass: 1, Value: json.RawMessage(`{"text":"late"}`)})
	f.must(err)
	f.reach("asks", engine.WaitingApproval)
	f.approve("asks")
	f.reach("asks", engine.Completed)

	f.reach("broken", engine.Blocked)
	effects, err := f.Desk.RunEffects(t.Context(), f.ana(), "key:broken")
	f.must(err)
	if len(effects.Items) != 1 || effects.Items[0].Status != engine.Unknown {
		t.Fatalf("what was sent and never answered is %+v, want one unknown effect", effects.Items)
	}
	_, err = f.Desk.Resolve(t.Context(), f.ana(), string(effects.Items[0].ID), desk.Resolve{Outcome: engine.Happened, Evidence: "Seen.", Receipt: json.RawMessage(`{"text":"hello"}`)})
	f.must(err)
	f.reach("broken", engine.Completed)

	f.verifies()
	f.must(f.Desk.Check(t.Context()))
	if strings.Contains(testkit.Bytes(t, filepath.Join(f.dir, instance.DatabaseFile)), canary) {
		t.Error("the sealed value stands in the database")
	}
}

// TestUpgrade_OldEvidenceHolds: what was decided before the upgrade is proven
// after it.
func TestUpgrade_OldEvidenceHolds(t *testing.T) {
	f := upgraded(t)
	f.verifies()
	file, err := f.Desk.Receipt(t.Context(), f.ana(), f.request("done").ID)
	f.must(err)
	key, err := os.ReadFile(filepath.Join(f.dir, "audit.pub"))
	f.must(err)
	if _, err := receipt.Check(file, strings.TrimSpace(string(key))); err != nil {
		t.Errorf("the receipt of a decision made before: %v", err)
	}
}

// folder is an opened data folder in a test.
type folder struct {
	*instance.Instance
	t   *testing.T
	dir string
}

// upgraded opens a copy of the first folder and lets it drive.
func upgraded(t *testing.T) *folder {
	t.Helper()
	f := &folder{t: t, dir: t.TempDir()}
	f.unpack("testdata/first.tgz")
	config, err := instance.LoadConfig(f.dir, "")
	f.must(err)
	opened := time.Now()
	now := func() time.Time { return leftAt.Add(2*time.Hour + time.Since(opened)) }
	f.Instance, err = instance.Open(t.Context(), instance.Options{Dir: f.dir, Config: config, Drive: true, Holder: "test", Now: now,
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
	f.must(err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(f.Desk.Stop(ctx), f.Close()); err != nil {
			t.Errorf("close the folder: %v", err)
		}
	})
	_, err = f.LoadDefinitions(t.Context())
	f.must(err)
	f.must(f.Desk.Start(t.Context()))
	return f
}

func (f *folder) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("unexpected error: %v", err)
	}
}

func (f *folder) unpack(name string) {
	f.t.Helper()
	packed, err := os.Open(name)
	f.must(err)
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	f.must(err)
	r := tar.NewReader(plain)
	for h, err := r.Next(); err != io.EOF; h, err = r.Next() {
		f.must(err)
		at := filepath.Join(f.dir, h.Name)
		if h.FileInfo().IsDir() {
			f.must(os.MkdirAll(at, 0o700))
			continue
		}
		content, err := io.ReadAll(r)
		f.must(err)
		f.must(os.WriteFile(at, content, h.FileInfo().Mode().Perm()))
	}
}

func (f *folder) ana() identity.Principal {
	f.t.Helper()
	p, err := f.Desk.PersonByEmail(f.t.Context(), desk.Terminal(), owner)
	f.must(err)
	return identity.Principal{Tenant: desk.Tenant, Kind: identity.KindPerson, Person: p.ID, Name: p.Name, Email: p.Email, Roles: p.Roles, How: "password", Channel: "browser"}
}

func (f *folder) request(key string) desk.Approval {
	f.t.Helper()
	run, err := f.Desk.Run(f.t.Context(), f.ana(), "key:"+key)
	f.must(err)
	page, err := f.Desk.Approvals(f.t.Context(), f.ana(), desk.ApprovalQuery{Run: run.ID})
	f.must(err)
	if len(page.Items) != 1 {
		f.t.Fatalf("run %s has %d requests, want 1", key, len(page.Items))
	}
	a, err := f.Desk.Approval(f.t.Context(), f.ana(), page.Items[0].ID)
	f.must(err)
	return a
}

func (f *folder) approve(key string) {
	f.t.Helper()
	a := f.request(key)
	d, err := f.Desk.Decide(f.t.Context(), f.ana(), a.ID, desk.Decide{Verdict: "approve", Digest: a.Digest})
	f.must(err)
	if d.Status != "approved" {
		f.t.Fatalf("after the approval the request of %s is %s", key, d.Status)
	}
}

// patience bounds every wait.
const patience = 30 * time.Second

func (f *folder) reach(key, status string) {
	f.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		run, err := f.Desk.Run(f.t.Context(), f.ana(), "key:"+key)
		f.must(err)
		if run.Status == status {
			return
		}
		if engine.Final(run.Status) || time.Now().After(end) {
			f.t.Fatalf("run %s is %s (%v), want %s", key, run.Status, run.Error, status)
		}
	}
}

func (f *folder) verifies() {
	f.t.Helper()
	report, err := f.Desk.Verify(f.t.Context(), f.ana())
	f.must(err)
	if !report.OK {
		f.t.Errorf("the log does not verify: %+v", report.Findings)
	}
}
