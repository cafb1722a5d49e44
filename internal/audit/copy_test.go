package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"countersign/internal/audit"
)

// cutTo removes everything after size entries, with all bookkeeping, as
// somebody who knows the tables would.
func (f fixture) cutTo(t *testing.T, size, nodes int) {
	t.Helper()
	f.sql(t, fmt.Sprintf(`DELETE FROM audit_entry WHERE tenant = 'default' AND seq >= %d`, size),
		fmt.Sprintf(`DELETE FROM audit_payload WHERE tenant = 'default' AND seq >= %d`, size),
		fmt.Sprintf(`DELETE FROM audit_head WHERE tenant = 'default' AND size > %d`, size),
		fmt.Sprintf(`DELETE FROM audit_node WHERE tenant = 'default' AND idx >= %d`, nodes),
		fmt.Sprintf(`UPDATE audit_log SET size = %[1]d, sealed = %[1]d WHERE tenant = 'default'`, size))
}

func TestHeadFile_OfACutLog_IsNotReplacedByWhatGrowsAfterTheCut(t *testing.T) {
	f := open(t)
	f.add(t, "default", 8)
	f.Close()
	kept := f.file(t, audit.HeadFile)
	f.cutTo(t, 6, 10)
	again := f.reopened(t) // a new process, which never saw the tail
	again.add(t, "default", 5)
	again.Close()
	if got := f.file(t, audit.HeadFile); got != kept {
		t.Errorf("the head that shows the cut was replaced:\n%s", got)
	}
	if again.Trouble() == "" {
		t.Error("the cut is no trouble")
	}
	if r, err := again.VerifyFolder(t.Context()); err != nil || r.OK {
		t.Errorf("VerifyFolder = %+v, %v; want the other entries noticed", r, err)
	}
}

func TestHeadFile_FollowsALogThatGrows(t *testing.T) {
	f := open(t)
	f.add(t, "default", 3)
	again := f.reopened(t)
	again.add(t, "default", 3)
	again.Close()
	heads, err := audit.ReadHeadFile(filepath.Join(f.dir, audit.HeadFile))
	if err != nil || again.Trouble() != "" {
		t.Fatalf("%v, trouble %q", err, again.Trouble())
	}
	r := again.verify(t, heads)
	for _, tenant := range r.Tenants {
		if tenant.Head != heads[tenant.Tenant] {
			t.Errorf("the copied head of %q is not the last", tenant.Tenant)
		}
	}
}

func TestHeadFile_ThatIsDamaged_IsKeptAndReported(t *testing.T) {
	f := open(t)
	f.add(t, "default", 1)
	f.Close()
	path := filepath.Join(f.dir, audit.HeadFile)
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	again := f.reopened(t)
	again.Close()
	if _, err := again.VerifyFolder(t.Context()); err == nil || again.Trouble() == "" || f.file(t, audit.HeadFile) != "{" {
		t.Errorf("VerifyFolder = %v, trouble %q, file %q", err, again.Trouble(), f.file(t, audit.HeadFile))
	}
}

func TestSeal_RefusesToGoOnAfterACutWhileItRuns(t *testing.T) {
	f := open(t)
	f.add(t, "default", 8)
	f.cutTo(t, 6, 10)
	if err := f.next(t); err == nil {
		t.Error("the log goes on from a size it had already passed")
	}
}
