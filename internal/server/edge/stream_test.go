package edge_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/live"
	"countersign/internal/server/edge"

	"github.com/labstack/echo/v4"
)

// listen opens a stream and returns what it wrote once it is over.
func listen(t *testing.T, hub *live.Hub, may func(context.Context) error) (over chan string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	w := httptest.NewRecorder()
	c := echo.New().NewContext(httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil), w)
	over = make(chan string, 1)
	go func() {
		if err := edge.Stream(c, hub, edge.Audience{May: may, Again: "access"}); err != nil {
			t.Error(err)
		}
		over <- w.Body.String()
	}()
	return over
}

// Whoever may no longer listen is let go by the next beat, without a word.
func TestStream_EndsAtTheBeatAfterAccessIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, began := 0, time.Now()
		over := listen(t, live.NewHub(1), func(context.Context) error {
			if asked++; asked > 2 {
				return errors.New("signed out")
			}
			return nil
		})
		got := <-over
		if n := strings.Count(got, ": beat"); n != 2 || asked != 3 {
			t.Errorf("%d beats after asking %d times, want 2 after 3: %q", n, asked, got)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s of the stream's own time to notice, want under a minute", took)
		}
	})
}

// That access changed is a reason to look again at once, and no news for the
// listener; what comes after it is not sent to whoever is gone.
func TestStream_LooksAgainWhenAccessChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, signedOut := live.NewHub(1), false
		over := listen(t, hub, func(context.Context) error {
			if signedOut {
				return errors.New("signed out")
			}
			return nil
		})
		synctest.Wait()
		hub.Publish("access", "")
		hub.Publish("runs", "run_1")
		synctest.Wait()
		signedOut = true
		hub.Publish("access", "")
		hub.Publish("runs", "run_2")
		got := <-over
		if !strings.Contains(got, "run_1") || strings.Contains(got, "run_2") || strings.Contains(got, "access") {
			t.Errorf("the stream wrote %q, want run_1 and nothing of access or run_2", got)
		}
	})
}
