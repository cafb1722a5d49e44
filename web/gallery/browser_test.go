package gallery_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/web/gallery"
	"countersign/web/static"
	"countersign/web/templates/parts"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// csp is what the server sends with every page.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types countersign"

// stage serves the gallery as the console would be served. What a page shows
// can be exchanged, and topics sent, while a browser looks at it.
type stage struct {
	*httptest.Server
	topics chan string

	mu    sync.Mutex // protects pages
	pages map[string][]byte
}

func newStage(t *testing.T) *stage {
	s := &stage{topics: make(chan string, 8), pages: map[string][]byte{}}
	for _, e := range gallery.Exhibits() {
		s.pages["/"+e.Name] = render(t, e)
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *stage) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", csp)
	if static.Plain(r.URL.Path) {
		static.Handler().ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/events" {
		s.stream(w, r)
		return
	}
	s.mu.Lock()
	page, ok := s.pages[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page)
}

func (s *stage) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case topic := <-s.topics:
			fmt.Fprintf(w, "event: %s\ndata: x\n\n", topic)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// exchange changes a page and sends a topic.
func (s *stage) exchange(page, topic string, change func(string) string) {
	s.mu.Lock()
	s.pages["/"+page] = []byte(change(string(s.pages["/"+page])))
	s.mu.Unlock()
	s.topics <- topic
}

// browser opens a tab; any complaint of the browser fails the test.
func browser(t *testing.T, width, height int) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser is not short")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		if path, err = exec.LookPath("google-chrome"); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal("no browser found, and CI needs one")
			}
			t.Skip("no browser found")
		}
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(width, height))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, done := chromedp.NewContext(alloc, chromedp.WithListener(func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("exception: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				t.Errorf("console: %s (%s)", e.Entry.Text, e.Entry.URL)
			}
		}
	}))
	t.Cleanup(done)
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// value evaluates a script in the page.
func value[T any](t *testing.T, ctx context.Context, script string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}

// press sends a key as a keyboard would: the protocol's own key events insert
// the letter even when the page took the key.
func press(t *testing.T, ctx context.Context, key string) {
	t.Helper()
	value[bool](t, ctx, fmt.Sprintf(`document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: %q, bubbles: true, cancelable: true}))`, key))
}

// holds waits until the expression is true.
func holds(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	for range 40 {
		if value[bool](t, ctx, "Boolean("+expression+")") {
			return
		}
		do(t, ctx, chromedp.Sleep(30*time.Millisecond))
	}
	t.Errorf("never true: %s\nfocus %s, reasons %s", expression, value[string](t, ctx, `document.activeElement.outerHTML.slice(0, 80)`), value[string](t, ctx, `JSON.stringify([...document.querySelectorAll('textarea')].map(x => x.value))`))
}

// tooWide names what makes the page scroll sideways, tooSmall what is smaller
// than a target may be (WCAG 2.2, 2.5.8).
const (
	tooWide  = `document.documentElement.scrollWidth > innerWidth + 1 ? [...document.querySelectorAll('main *')].filter(n => n.getBoundingClientRect().right > innerWidth + 1 && !n.closest('.map, .rail')).map(n => n.tagName + '.' + n.className).slice(0, 3).join(' ') || 'something' : ''`
	tooSmall = `[...document.querySelectorAll('button, .button, summary, input:not([type=hidden]), select')].filter(n => n.offsetParent && n.getClientRects().length && !n.closest('label, .map')).filter(n => Math.min(n.getBoundingClientRect().width, n.getBoundingClientRect().height) < 23.5).map(n => n.outerHTML.slice(0, 80)).slice(0, 3).join(' | ')`
)

func TestBrowser_EveryPageLoadsUnderThePolicyAndFitsAPhone(t *testing.T) {
	s := newStage(t)
	ctx := browser(t, 390, 844)
	for _, e := range gallery.Exhibits() {
		do(t, ctx, chromedp.Navigate(s.URL+"/"+e.Name))
		wide, small := value[string](t, ctx, tooWide), value[string](t, ctx, tooSmall)
		if wide != "" {
			t.Errorf("%s is wider than a phone: %s", e.Name, wide)
		}
		if small != "" {
			t.Errorf("%s has targets below 24 px: %s", e.Name, small)
		}
	}
}

func TestBrowser_ApprovingTakesTwoStepsInPlace(t *testing.T) {
	s := newStage(t)
	ctx := browser(t, 1440, 1000)
	do(t, ctx, chromedp.Navigate(s.URL+"/approval-pending"))
	holds(t, ctx, `document.querySelector('#connection.is-live')`)
	holds(t, ctx, `document.activeElement === document.body && document.querySelector('#confirm').hidden`)
	do(t, ctx, chromedp.Click(chromedp.CSS("#arm")))
	holds(t, ctx, `!document.querySelector('#confirm').hidden && document.querySelector('#choose').hidden && document.activeElement.id === 'confirm-title'`)
	holds(t, ctx, `!document.querySelector('#confirm-button').disabled`)
	press(t, ctx, "Escape")
	holds(t, ctx, `document.querySelector('#confirm').hidden && document.activeElement.id === 'choose'`)
	value[any](t, ctx, `document.activeElement.blur()`)
	press(t, ctx, "a")
	holds(t, ctx, `!document.querySelector('#confirm').hidden`)
	press(t, ctx, "r")
	do(t, ctx, chromedp.SendKeys(chromedp.CSS("#reject textarea"), "approve? no, a"))
	holds(t, ctx, `document.querySelector('#confirm').hidden && document.querySelector('#reject textarea').value === 'approve? no, a'`)
	do(t, ctx, chromedp.Reload())
	holds(t, ctx, `document.querySelector('#reject').open && document.querySelector('#reject textarea').value === 'approve? no, a'`)
}

func TestBrowser_FoldedValuesMustBeOpenedFirst(t *testing.T) {
	s := newStage(t)
	ctx := browser(t, 1440, 1000)
	do(t, ctx, chromedp.Navigate(s.URL+"/approval-long"))
	holds(t, ctx, `document.querySelector('#arm').disabled && !document.querySelector('#gate').hidden`)
	press(t, ctx, "a")
	holds(t, ctx, `document.querySelector('#confirm').hidden`)
	value[any](t, ctx, `document.querySelectorAll('[data-fold]').forEach(d => d.open = true)`)
	holds(t, ctx, `!document.querySelector('#arm').disabled && document.querySelector('#gate').hidden`)
}

func TestBrowser_NewRowsWaitBehindAButton(t *testing.T) {
	s := newStage(t)
	ctx := browser(t, 1440, 1000)
	do(t, ctx, chromedp.Navigate(s.URL+"/inbox"))
	holds(t, ctx, `document.querySelector('#connection.is-live')`)
	press(t, ctx, "j")
	press(t, ctx, "j")
	holds(t, ctx, `document.activeElement.closest('[data-key]')?.dataset.key === 'apr_71'`)
	s.exchange("inbox", "approvals", func(page string) string {
		return strings.Replace(page, `data-key="apr_72"`, `data-key="apr_99"`, 1)
	})
	holds(t, ctx, `document.querySelector('.pill')?.textContent === '1 new'`)
	holds(t, ctx, `document.activeElement.closest('[data-key]')?.dataset.key === 'apr_71' && !document.querySelector('[data-key=apr_99]') && document.querySelector('[data-key=apr_72].gone')`)
	do(t, ctx, chromedp.Click(chromedp.CSS(".pill")))
	holds(t, ctx, `document.querySelector('[data-key=apr_99]') && !document.querySelector('[data-key=apr_72]') && !document.querySelector('.pill')`)
}

func TestBrowser_AChangeDisarmsAndKeepsWhatIsTyped(t *testing.T) {
	s := newStage(t)
	ctx := browser(t, 1440, 1000)
	do(t, ctx, chromedp.Navigate(s.URL+"/approval-pending"))
	holds(t, ctx, `document.querySelector('#connection.is-live')`)
	press(t, ctx, "r")
	do(t, ctx, chromedp.SendKeys(chromedp.CSS("#reject textarea"), "because"))
	s.exchange("approval-pending", "approvals", func(page string) string {
		return strings.ReplaceAll(page, "sha256:9f2c", "sha256:0000")
	})
	holds(t, ctx, `document.querySelector('#approval > .pill') && document.querySelector('#arm').disabled && !document.querySelector('#gate').hidden`)
	holds(t, ctx, `document.activeElement.matches('#reject textarea') && document.activeElement.value === 'because'`)
	do(t, ctx, chromedp.Click(chromedp.CSS("#approval > .pill")))
	holds(t, ctx, `document.querySelector('#approval').dataset.digest.startsWith('sha256:0000') && !document.querySelector('#arm').disabled`)
	holds(t, ctx, `document.querySelector('#reject textarea').value === 'because'`)
}

// The clock that ticks says what the server says, to the word.
func TestBrowser_TheClockSpeaksAsTheServer(t *testing.T) {
	s := newStage(t)
	ctx := browser(t, 1440, 1000)
	do(t, ctx, chromedp.Navigate(s.URL+"/approval-pending"))
	holds(t, ctx, `document.querySelector('#connection.is-live')`)
	distances := []time.Duration{
		2 * time.Second, 90 * time.Second, 59*time.Minute + 30*time.Second, time.Hour + 30*time.Second, time.Hour + 90*time.Second, 2*time.Hour + 59*time.Minute + 30*time.Second,
		3*time.Hour + 30*time.Minute, 23*time.Hour + 30*time.Minute, 47*time.Hour + 59*time.Minute, 49 * time.Hour, 401*24*time.Hour - time.Hour,
		-2 * time.Second, -90 * time.Second, -30*time.Hour - 30*time.Minute, -72*time.Hour - time.Minute}
	for i, d := range distances {
		value[any](t, ctx, fmt.Sprintf(`{
			const clock = document.querySelector('.clock').cloneNode(true), at = clock.querySelector('time');
			at.dataset.ticks = %q;
			at.dateTime = new Date(Date.now() + %d).toISOString();
			document.querySelector('#strip').append(clock);
		}`, fmt.Sprint(i), d.Milliseconds()))
	}
	for i, d := range distances {
		holds(t, ctx, fmt.Sprintf(`document.querySelector('time[data-ticks="%d"]').textContent === %q`, i, parts.Relative(d)))
	}
}

func TestBrowser_WithoutScriptTheConfirmStepIsAPage(t *testing.T) {
	page := render(t, pick(t, "approval-armed"))
	if !regexp.MustCompile(`id="choose"[^>]* hidden`).Match(page) || regexp.MustCompile(`id="confirm"[^>]* hidden`).Match(page) {
		t.Error("the armed page does not show the confirm step by itself")
	}
}

func pick(t *testing.T, name string) gallery.Exhibit {
	t.Helper()
	for _, e := range gallery.Exhibits() {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no exhibit %s", name)
	return gallery.Exhibit{}
}
