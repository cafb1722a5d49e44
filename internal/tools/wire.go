package tools

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits of an answer.
const (
	ResponseBytesMax = 1 << 20  // of a body that is read
	ReceiptBytes     = 16 << 10 // of a body that a receipt keeps
	headerBytesMax   = 64 << 10
	handshakeMax     = 10 * time.Second
)

// wireAnswer is what came back, or did not.
type wireAnswer struct {
	left   bool // a byte of the request may have left
	err    error
	status int
	header http.Header
	body   []byte // as it came, at most ResponseBytesMax
	cut    bool   // the body is not all there
	at     time.Time
}

// exchange sends one request on a connection of its own and reads the answer.
// Nothing is reused, followed or sent again: net/http repeats requests only on
// reused connections and over HTTP/2, and there are neither here.
func (w *World) exchange(ctx context.Context, req *http.Request) wireAnswer {
	var left atomic.Bool
	refused := &refusal{}
	tr := w.transport(&left, refused)
	defer tr.CloseIdleConnections()
	req.GetBody = nil
	req.Close = true
	resp, err := tr.RoundTrip(req.WithContext(ctx))
	a := wireAnswer{left: left.Load(), at: w.now()}
	if err != nil {
		a.err = err
		if why := refused.err.Load(); why != nil && !a.left {
			a.err = *why
		}
		return a
	}
	defer resp.Body.Close()
	a.left, a.status, a.header = true, resp.StatusCode, resp.Header
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, ResponseBytesMax+1))
	if err != nil {
		a.cut = true
	}
	if len(a.body) > ResponseBytesMax {
		a.body, a.cut = a.body[:ResponseBytesMax], true
	}
	a.at = w.now()
	return a
}

// refusal remembers the address that was refused, if any was.
type refusal struct{ err atomic.Pointer[error] }

func (w *World) transport(left *atomic.Bool, refused *refusal) *http.Transport {
	dialer := &net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		err := w.reachText(address)
		if err != nil {
			refused.err.Store(&err)
		}
		return err
	}}
	return &http.Transport{
		Proxy:                  nil,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: headerBytesMax,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &watched{c, left}, nil
		},
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return w.secure(ctx, c, addr, left)
		},
	}
}

// secure does the handshake below the watch, so that only bytes of the request
// count as having left.
func (w *World) secure(ctx context.Context, c net.Conn, addr string, left *atomic.Bool) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("read address: %w", err)
	}
	tc := tls.Client(c, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, RootCAs: w.Roots, NextProtos: []string{"http/1.1"}})
	ctx, stop := context.WithTimeout(ctx, handshakeMax)
	defer stop()
	if err := tc.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("tls handshake: %w", err)
	}
	return &watched{tc, left}, nil
}

// watched notes, before it happens, that something is written.
type watched struct {
	net.Conn
	left *atomic.Bool
}

func (c *watched) Write(p []byte) (int, error) {
	if len(p) > 0 {
		c.left.Store(true)
	}
	return c.Conn.Write(p)
}

// receiptHeaders are the response headers worth keeping as evidence.
var receiptHeaders = []string{"Content-Type", "Date", "Etag", "Idempotent-Replayed", "Last-Modified", "Location",
	"Request-Id", "Retry-After", "X-Amzn-Requestid", "X-Correlation-Id", "X-Request-Id"}

// headerTextMax cuts one header in a receipt.
const headerTextMax = 1 << 10

func keptHeaders(h http.Header, m *mask) map[string]string {
	kept := map[string]string{}
	for _, name := range receiptHeaders {
		if v := strings.Join(h.Values(name), ", "); v != "" {
			v = m.text(strings.ToValidUTF8(v, "�"))
			kept[strings.ToLower(name)] = strings.ToValidUTF8(v[:min(len(v), headerTextMax)], "�")
		}
	}
	return kept
}

// retryAfter reads Retry-After (RFC 9110 section 10.2.3), at most retryAfterMax.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	d := time.Duration(0)
	if at, err := http.ParseTime(v); err == nil {
		d = at.Sub(now)
	} else if s, err := strconv.ParseUint(v, 10, 31); err == nil {
		d = time.Duration(s) * time.Second
	}
	return min(max(d, 0), retryAfterMax)
}

// retryAfterMax keeps a target from parking a run for ever.
const retryAfterMax = 24 * time.Hour

func (w *World) now() time.Time {
	if w.Now != nil {
		return w.Now().UTC()
	}
	return time.Now().UTC()
}
