package arch_test

import (
	"os/exec"
	"strings"
	"testing"
)

// modernc.org/sqlite is translated against one exact modernc.org/libc and
// breaks silently with another, so the version its go.mod names must win.
func TestPins_LibcIsTheOneSQLiteNames(t *testing.T) {
	dir := goTool(t, "list", "-m", "-f", "{{.Dir}}", "modernc.org/sqlite")
	mod := goTool(t, "mod", "edit", "-json", dir+"/go.mod")
	_, rest, ok := strings.Cut(mod, `"modernc.org/libc"`)
	if !ok {
		t.Fatal("modernc.org/sqlite names no libc")
	}
	_, rest, _ = strings.Cut(rest, `"Version": "`)
	want, _, _ := strings.Cut(rest, `"`)
	if got := goTool(t, "list", "-m", "-f", "{{.Version}}", "modernc.org/libc"); got != want {
		t.Errorf("modernc.org/libc is %s, but modernc.org/sqlite was made for %s", got, want)
	}
}

func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}
