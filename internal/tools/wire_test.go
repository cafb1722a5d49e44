package tools

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// raw is a server that hands each connection to f; it counts requests.
func raw(t *testing.T, f func(c net.Conn, n int32)) (url string, requests *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = &atomic.Int32{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				f(c, requests.Add(1))
			}
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String(), requests
}

// D22: a redirect is an answer; the method and body go nowhere else.
func TestExchange_NeverFollowsARedirect(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", other.URL)
			w.WriteHeader(status)
		}))
		a := (&World{Allow: loopback}).exchange(t.Context(), request(t, "POST", srv.URL, "x"))
		if a.err != nil || a.status != status {
			t.Errorf("%d: %d %v", status, a.status, a.err)
		}
		srv.Close()
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests elsewhere", n)
	}
}

// net/http sends a request with an Idempotency-Key again by itself when a
// reused connection dies; here nothing is ever reused.
func TestExchange_NeverSendsAgainByItself(t *testing.T) {
	url, n := raw(t, func(c net.Conn, n int32) {
		if n == 1 {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		} // later ones: closed without an answer
	})
	w := &World{Allow: loopback}
	for i, method := range []string{"POST", "POST", "GET", "PUT"} {
		req := request(t, method, url, map[string]string{"GET": ""}[method])
		req.Header.Set("Idempotency-Key", "k")
		a := w.exchange(t.Context(), req)
		if (a.err == nil) != (i == 0) || !a.left {
			t.Errorf("%d: err %v left %v", i, a.err, a.left)
		}
		if got := n.Load(); got != int32(i+1) {
			t.Fatalf("after %d calls the server saw %d requests", i+1, got)
		}
	}
}

func TestExchange_KnowsWhetherAByteLeft(t *testing.T) {
	w := &World{Allow: loopback}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	l.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler()) // its certificate is not trusted
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	for _, url := range []string{closed, strings.Replace(plain.URL, "http:", "https:", 1), secure.URL, "http://no-such-host.invalid/"} {
		if a := w.exchange(t.Context(), request(t, "POST", url, "x")); a.err == nil || a.left {
			t.Errorf("%s: err %v left %v", url, a.err, a.left)
		}
	}
	silent, _ := raw(t, func(c net.Conn, _ int32) { _, _ = io.Copy(io.Discard, c) })
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if a := w.exchange(ctx, request(t, "POST", silent, "x")); a.err == nil || !a.left {
		t.Errorf("no answer: err %v left %v", a.err, a.left)
	}
}

func TestExchange_TrustsTLSOnlyByTheRoots(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	defer srv.Close()
	w := &World{Allow: loopback, Roots: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	if a := w.exchange(t.Context(), request(t, "GET", srv.URL, "")); a.err != nil || string(a.body) != "HTTP/1.1" {
		t.Errorf("%v %q", a.err, a.body)
	}
}

// The check is on the address that is connected to, so a name that resolves to
// loopback is refused like the address itself.
func TestExchange_ChecksTheAddressBehindAName(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	port := srv.URL[strings.LastIndex(srv.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f000001"} {
		a := (&World{}).exchange(t.Context(), request(t, "GET", "http://"+host+port, ""))
		if a.err == nil || a.left {
			t.Errorf("%s: err %v left %v", host, a.err, a.left)
		}
		if _, ok := errors.AsType[*addressError](a.err); !ok && !strings.HasPrefix(host, "2") && !strings.HasPrefix(host, "0x") {
			t.Errorf("%s: %v", host, a.err)
		}
	}
}

func TestExchange_CutsAndCapsBodies(t *testing.T) {
	short, _ := raw(t, func(c net.Conn, _ int32) {
		_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{\"id\":")
	})
	w := &World{Allow: loopback}
	if a := w.exchange(t.Context(), request(t, "POST", short, "x")); a.err != nil || a.status != 201 || !a.cut || string(a.body) != `{"id":` {
		t.Errorf("cut: %+v", a)
	}
	for size, cut := range map[int]bool{ResponseBytesMax: false, ResponseBytesMax + 1: true} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", size))
		}))
		if a := w.exchange(t.Context(), request(t, "GET", srv.URL, "")); a.err != nil || a.cut != cut || len(a.body) != ResponseBytesMax {
			t.Errorf("%d bytes: cut %v, %d bytes, %v", size, a.cut, len(a.body), a.err)
		}
		srv.Close()
	}
	big := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Big", strings.Repeat("x", 2*headerBytesMax))
	}))
	defer big.Close()
	if a := w.exchange(t.Context(), request(t, "POST", big.URL, "x")); a.err == nil || !a.left {
		t.Errorf("headers past the limit: %+v", a)
	}
}

func TestRetryAfter_ReadsBothFormsWithinALimit(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "x": 0, "1h": 0, "99999999": retryAfterMax,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {v}}, now); got != want {
			t.Errorf("%q: %s, want %s", v, got, want)
		}
	}
}
