package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// tab is one browser window of one person.
type tab struct {
	t     *testing.T
	ctx   context.Context
	world *world

	mu     sync.Mutex // protects faults
	faults []string   // what the pages wrote to the console
}

// browse opens a window; script false turns JavaScript off.
func (w *world) browse(t *testing.T, script bool) *tab {
	t.Helper()
	if chromium == "" {
		t.Skip("no Chromium here: install it to run the journeys (CI requires it)")
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.ExecPath(chromium), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true))
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(alloc)
	t.Cleanup(end)
	ctx, over := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(over)
	b := &tab{t: t, ctx: ctx, world: w}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" || m.Type == "warning" {
				b.mu.Lock()
				b.faults = append(b.faults, m.String())
				b.mu.Unlock()
			}
		}
	}()
	t.Cleanup(b.quiet)
	b.size(1440, 1000)
	if !script {
		if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
			t.Fatalf("turn script off: %v", err)
		}
	}
	return b
}

// quiet fails the journey if a page complained.
func (b *tab) quiet() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		if strings.Contains(f, "status of 4") { // a refused POST is what some journeys are about
			continue
		}
		b.t.Errorf("the page wrote to the console: %s", f)
	}
}

func (b *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.shot("failed")
		b.t.Fatalf("%s: %v\n%s", what, err, b.text())
	}
}

func (b *tab) size(width, height int64) {
	b.do("resize", chromedp.EmulateViewport(width, height))
}

// theme makes the system's colour scheme dark or light, without motion: a
// picture is taken at once.
func (b *tab) theme(scheme string) {
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	if err != nil {
		b.t.Fatalf("set the colour scheme: %v", err)
	}
}

func (b *tab) open(path string) {
	b.t.Helper()
	b.do("open "+path, chromedp.Navigate(b.world.URL+path))
}

// signIn signs in through the form and lands on path.
func (b *tab) signIn(a account, path string) {
	b.t.Helper()
	b.open(path)
	b.fill(`input[name="email"]`, a.Email)
	b.fill(`input[name="password"]`, a.Password)
	b.click(`main form button[type="submit"]`)
	b.see("main h1")
}

func (b *tab) click(css string) {
	b.t.Helper()
	b.do("click "+css, chromedp.Click(chromedp.CSS(css)))
}

// fill replaces what stands in a field by typing.
func (b *tab) fill(css, text string) {
	b.t.Helper()
	b.see(css)
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%q).value = ''", css))); err != nil {
		b.t.Fatalf("clear %s: %v", css, err)
	}
	b.do("fill "+css, chromedp.SendKeys(chromedp.CSS(css), text))
}

func (b *tab) see(css string) {
	b.t.Helper()
	b.do("see "+css, chromedp.WaitVisible(chromedp.CSS(css)))
}

// says waits until the page's main region holds the words.
func (b *tab) says(words string) {
	b.t.Helper()
	b.eventually(fmt.Sprintf("%q on the page", words), func() bool { return strings.Contains(b.text(), words) })
}

// eventually polls; pages change by themselves when something happens.
func (b *tab) eventually(what string, ok func() bool) {
	b.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if ok() {
			return
		}
	}
	b.shot("failed")
	b.t.Fatalf("waited in vain for %s; the page is\n%s", what, b.text())
}

// text is what a person reads in the main region.
func (b *tab) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("main")))
	if err != nil {
		return "unreadable: " + err.Error()
	}
	return s
}

// html is the main region with what stands in its fields.
func (b *tab) html() string {
	s, err := chromedp.Run(b.ctx, chromedp.OuterHTML(chromedp.CSS("main")))
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// where is the path of the page.
func (b *tab) where() string {
	s, err := chromedp.Run(b.ctx, chromedp.Location())
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimPrefix(s, b.world.URL)
}

// shot keeps a picture of the whole page where E2E_SHOTS points; of a failure
// with the test's artifacts at least.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("E2E_SHOTS")
	if dir == "" {
		if !b.t.Failed() && name != "failed" {
			return // nobody looks
		}
		dir = b.t.ArtifactDir()
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Logf("no picture of %s: %v", name, err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Log(err)
	}
}

// fits fails when a page has to be scrolled sideways.
func (b *tab) fits(path string, width int64) {
	b.t.Helper()
	over, err := chromedp.Run(b.ctx, chromedp.Evaluate[int64](`document.documentElement.scrollWidth - document.documentElement.clientWidth`))
	if err != nil {
		b.t.Fatal(err)
	}
	if over > 0 {
		b.t.Errorf("%s at %d wide is %d pixels too wide", path, width, over)
	}
}
