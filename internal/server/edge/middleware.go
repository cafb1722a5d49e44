package edge

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"countersign/internal/problem"

	"github.com/labstack/echo/v4"
)

// Limits of one request.
const (
	FormBytesMax   = 1 << 20 // a form or a JSON body
	HeaderBytesMax = 32 << 10
)

const referenceKey = "edge.reference"

// Reference returns the id by which a person can name this request to whoever
// runs the console; the log line carries the same.
func Reference(c echo.Context) string {
	s, _ := c.Get(referenceKey).(string)
	return s
}

// References gives every request its reference. One sent by the client is
// ignored: it could forge log lines.
func References(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ref := rand.Text()[:12]
		c.Set(referenceKey, ref)
		c.Response().Header().Set("X-Request-Id", ref)
		return next(c)
	}
}

// policy lets a page load its own styles, scripts and images and nothing
// else, and be framed by nobody.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types countersign"

// Headers sets what every answer carries, errors and static files too.
func Headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store") // static files say otherwise themselves
		return next(c)
	}
}

// Hosts refuses requests for a host that is not ours, which is how a page of
// another site reaches a console on loopback (DNS rebinding). Hosts that are
// loopback addresses or localhost pass, since no name can be rebound to them.
func Hosts(baseURL string) echo.MiddlewareFunc {
	own := ""
	if u, err := url.Parse(baseURL); err == nil {
		own = strings.ToLower(u.Hostname())
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if host := hostname(c.Request().Host); host != own && !loopback(host) {
				return problem.New(problem.Forbidden, "unknown_host",
					"This console is not reached under the name %q. Use its own address, or set base_url in its configuration.", host)
			}
			return next(c)
		}
	}
}

func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// SameOrigin refuses requests that change something and come from another
// origin, by the browser's own word (Sec-Fetch-Site, else Origin).
func SameOrigin() echo.MiddlewareFunc {
	guard := http.NewCrossOriginProtection()
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := guard.Check(c.Request()); err != nil {
				return problem.New(problem.Forbidden, "cross_origin",
					"This request came from another site, so nothing was done. Open the console itself and try there.").Because(err)
			}
			return next(c)
		}
	}
}

// Limit bounds the body of every request.
func Limit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.ContentLength > FormBytesMax {
			return problem.New(problem.TooLarge, "too_large", "The request is larger than the %d bytes allowed here. Nothing was changed.", FormBytesMax)
		}
		r.Body = http.MaxBytesReader(c.Response(), r.Body, FormBytesMax)
		return next(c)
	}
}

// Recover turns a panic of a handler into an internal problem. The handler's
// transaction, if any, has rolled back by then.
func Recover(logger *slog.Logger) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			defer func() {
				v := recover()
				if v == nil {
					return
				}
				if e, ok := v.(error); ok && errors.Is(e, http.ErrAbortHandler) {
					panic(v)
				}
				logger.Error("handler panicked", "reference", Reference(c), "route", c.Path(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
				err = problem.From(fmt.Errorf("panic: %v", v))
			}()
			return next(c)
		}
	}
}
