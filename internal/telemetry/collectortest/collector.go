// Package collectortest is a collector of traces for tests: it takes what
// arrives by OTLP over HTTP and keeps it. It knows nothing of Countersign.
package collectortest

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is one that arrived. Ids are hex.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Failed            bool
	Nanos             int64 // from start to end
	Attributes        map[string]string
}

// Collector keeps spans.
type Collector struct {
	URL string

	mu    sync.Mutex // protects what follows
	spans []Span
	raw   []byte
}

// New starts a collector that ends with the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			t.Errorf("the collector got something else: %v", err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) take(r *http.Request) error {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		return fmt.Errorf("%s %s", r.Method, r.URL.Path)
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var in collect.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &in); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, raw...)
	for _, of := range in.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				one := Span{Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Name: s.GetName(), Failed: s.GetStatus().GetCode() == 2, Nanos: int64(s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano()), Attributes: map[string]string{}}
				for _, a := range s.GetAttributes() {
					one.Attributes[a.GetKey()] = a.GetValue().GetStringValue()
					if a.GetValue().GetStringValue() == "" {
						one.Attributes[a.GetKey()] = fmt.Sprint(a.GetValue().GetIntValue())
					}
				}
				c.spans = append(c.spans, one)
			}
		}
	}
	return nil
}

// Spans are those that arrived so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Bytes is everything that arrived.
func (c *Collector) Bytes() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.raw)
}
