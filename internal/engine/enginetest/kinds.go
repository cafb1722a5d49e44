package enginetest

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"countersign/internal/engine"
	"countersign/internal/tools"
)

// Kind is one way a tool may be able to say what happened.
type Kind struct {
	Tool string
	// Asks reports that a lost answer ends with a person.
	Asks bool
}

// Kinds are those of DESIGN section 4.
var Kinds = []Kind{
	{Tool: "write.keyquery"}, {Tool: "write.key"}, {Tool: "write.query"}, {Tool: "write.file"},
	{Tool: "write.plain", Asks: true}, {Tool: "write.exec", Asks: true},
}

// Outside is a real world with a target on loopback, a folder for files and a
// ledger for programs.
type Outside struct {
	*Target
	Dir   string
	World *tools.World
	Cfg   tools.Config
}

// NewOutside starts a target and makes the world that reaches it.
func NewOutside(t testing.TB) *Outside {
	t.Helper()
	return OutsideAt(t, NewTarget(t), t.TempDir())
}

// OutsideAt makes the world for a target and a folder that exist.
func OutsideAt(t testing.TB, target *Target, dir string) *Outside {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"locks", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &Outside{Target: target, Dir: dir,
		World: &tools.World{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, LockDir: filepath.Join(dir, "locks")},
		Cfg:   tools.Config{"target": target.URL, "program": program, "ledger": target.Ledger, "root": filepath.Join(dir, "root")}}
}

// Use has an engine reach this outside.
func (o *Outside) Use(opts *engine.Options) { opts.World, opts.Config = o.World, o.Cfg }

// Count is how often it really happened, by the oracle of the tool.
func (o *Outside) Count(tool string) int {
	if tool != "write.file" {
		return len(o.Happened())
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "root", "page.md")); err != nil {
		return 0
	}
	return 1
}

// RunEffect is the program of write.exec: called first in TestMain, it does
// the effect and exits when the test binary was started for that.
func RunEffect() {
	if len(os.Args) < 2 || len(os.Args[1]) < 8 || os.Args[1][:8] != "-effect=" {
		return
	}
	set := flag.NewFlagSet("effect", flag.ExitOnError)
	text, ledger := set.String("effect", "", ""), set.String("ledger", "", "")
	_ = set.Parse(os.Args[1:])
	if err := AppendLedger(*ledger, Happened{Key: os.Getenv("COUNTERSIGN_IDEMPOTENCY_KEY"), Text: *text}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(`{"done":true}`)
	os.Exit(0)
}
