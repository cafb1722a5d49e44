package live_test

import (
	"fmt"
	"testing"

	"countersign/internal/live"

	"github.com/google/go-cmp/cmp"
)

func drain(l *live.Listener) (got []string) {
	for {
		select {
		case e, ok := <-l.C:
			if !ok {
				return append(got, "closed")
			}
			got = append(got, e.ID+" "+e.Topic+" "+e.Subject)
		default:
			return got
		}
	}
}

func TestSubscribe_SeesWhatIsPublishedAfterwards(t *testing.T) {
	h := live.NewHub(7)
	h.Publish("runs", "run_0")
	l := h.Subscribe("")
	h.Publish("approvals", "apr_1")
	if diff := cmp.Diff([]string{"7-2 approvals apr_1"}, drain(l)); diff != "" {
		t.Errorf("events mismatch (-want +got):\n%s", diff)
	}
}

func TestSubscribe_ContinuesAfterTheLastEventSeen(t *testing.T) {
	h := live.NewHub(7)
	for i := range 4 {
		h.Publish("runs", fmt.Sprint(i))
	}
	if diff := cmp.Diff([]string{"7-3 runs 2", "7-4 runs 3"}, drain(h.Subscribe("7-2"))); diff != "" {
		t.Errorf("events mismatch (-want +got):\n%s", diff)
	}
	if got := drain(h.Subscribe("7-4")); got != nil {
		t.Errorf("up to date listener got %v, want nothing", got)
	}
}

func TestSubscribe_AnUnknownIDGetsOneReset(t *testing.T) {
	h := live.NewHub(7)
	for i := range 600 {
		h.Publish("runs", fmt.Sprint(i))
	}
	for _, last := range []string{"6-3", "7-9999", "7-1", "nonsense", "7-"} {
		if diff := cmp.Diff([]string{"7-600 reset "}, drain(h.Subscribe(last))); diff != "" {
			t.Errorf("Subscribe(%q) mismatch (-want +got):\n%s", last, diff)
		}
	}
}

func TestPublish_ResetsASlowListenerInsteadOfWaiting(t *testing.T) {
	h := live.NewHub(1)
	l := h.Subscribe("")
	for i := range 70 {
		h.Publish("runs", fmt.Sprint(i))
	}
	if got := len(drain(l)); got != 64 {
		t.Fatalf("a slow listener holds %d events, want the 64 that fit", got)
	}
	h.Publish("runs", "x")
	h.Publish("runs", "y")
	if diff := cmp.Diff([]string{"1-71 reset ", "1-72 runs y"}, drain(l)); diff != "" {
		t.Errorf("events after lagging mismatch (-want +got):\n%s", diff)
	}
}

func TestClose_MayBeCalledTwice(t *testing.T) {
	h := live.NewHub(1)
	l, m := h.Subscribe(""), h.Subscribe("")
	l.Close()
	l.Close()
	if h.Listening() != 1 {
		t.Errorf("Listening() = %d, want 1", h.Listening())
	}
	h.Close()
	h.Close()
	m.Close()
	h.Publish("runs", "late")
	if diff := cmp.Diff([]string{"closed"}, drain(h.Subscribe(""))); diff != "" {
		t.Errorf("subscribing to a closed hub mismatch (-want +got):\n%s", diff)
	}
}
