package tools

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/expr"
)

// httpCode is an HTTP request template ready to be resolved.
type httpCode struct {
	spec    *httpSpec
	url     *urlCode
	headers map[string]*expr.Text
	body    *expr.Value           // secret leaves replaced by masked
	leaves  map[string]*expr.Text // JSON Pointer in body → text that holds a secret
	judge   judgeCode
}

// urlCode is a URL template: either everything is text that begins with a
// literal scheme and host, or a config value gives them and rest follows.
type urlCode struct {
	config string // name of the config value that is the beginning; "" none
	rest   *expr.Text
	query  []bool // per part of rest: it stands in the query
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// Default conditions. 202 means accepted, not done (RFC 9110 section 15.3.3),
// so a write must say itself that this is enough.
const (
	readOKDefault  = "status >= 200 && status < 300"
	writeOKDefault = "status >= 200 && status < 300 && status != 202"
	exitOKDefault  = "exit == 0"
)

// defaultConditions makes the defaults part of the compiled form.
func (s *spec) defaultConditions() {
	main := readOKDefault
	if s.Effect == "write" {
		main = writeOKDefault
	}
	http := func(h *httpSpec, ok string) {
		if h != nil && h.OK == "" {
			h.OK = ok
		}
	}
	exec := func(e *execSpec) {
		if e != nil && e.OK == "" {
			e.OK = exitOKDefault
		}
	}
	http(s.HTTP, main)
	exec(s.Exec)
	if s.Reconcile != nil {
		http(s.Reconcile.HTTP, readOKDefault)
		exec(s.Reconcile.Exec)
	}
	for _, r := range []*readingSpec{s.Precondition, s.Preview} {
		if r != nil {
			http(r.HTTP, readOKDefault)
		}
	}
}

func (b *builder) http(pointer string, h *httpSpec, write bool, extra ...string) *httpCode {
	in := slices.Concat(inNames, extra)
	open := slices.Concat(in, []string{"secret"})
	b.oneOf(pointer+"/method", h.Method, methods)
	if h.Body != nil && (h.Method == "GET" || h.Method == "HEAD") {
		b.fault(pointer+"/body", 0, "a %s request has no body", h.Method)
	}
	if write && h.Method == "HEAD" {
		b.fault(pointer+"/method", 0, "HEAD changes nothing; this tool has effect: write")
	}
	b.limit(pointer+"/timeout", h.Timeout, httpTimeoutMax)
	c := &httpCode{spec: h, url: b.url(pointer+"/url", h.URL, extra), headers: map[string]*expr.Text{}}
	for name, src := range h.Headers {
		at := pointer + "/headers/" + escape(name)
		b.headerName(at, name)
		if src != "" {
			c.headers[name] = b.text(at, src, open...)
		}
	}
	b.contentType(pointer, h)
	c.body, c.leaves = b.jsonBody(pointer+"/body", h.Body, in, open)
	c.judge = b.judge(pointer, h.judgeSpec, write, slices.Concat(httpNames, extra))
	return c
}

var headerForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$") // RFC 9110 token

// headersKept are set by the transport and by nobody else: they frame the
// message, route it, or carry what the console knows.
var headersKept = []string{"Connection", "Content-Length", "Expect", "Forwarded", "Host", "Keep-Alive", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Traceparent", "Tracestate", "Accept-Encoding"}

func (b *builder) headerName(pointer, name string) {
	switch {
	case !headerForm.MatchString(name):
		b.fault(pointer, 0, "%q cannot be the name of a header", name)
	case slices.Contains(headersKept, http.CanonicalHeaderKey(name)):
		b.fault(pointer, 0, "the header %s is set by the console", name)
	}
}

func (b *builder) contentType(pointer string, h *httpSpec) {
	seen := map[string]string{}
	for name, v := range h.Headers {
		canonical := http.CanonicalHeaderKey(name)
		if seen[canonical] != "" {
			b.fault(pointer+"/headers/"+escape(name), 0, "the header %s is there twice", canonical)
		}
		seen[canonical] = name
		if canonical == "Content-Type" && h.Body != nil && !strings.Contains(v, "json") {
			b.fault(pointer+"/headers/"+escape(name), 0, "a body is sent as JSON; %q is another type", v)
		}
	}
}

// jsonBody takes the leaves that hold secrets out of the body, so that a value
// from params can never be taken for a reference to a secret.
func (b *builder) jsonBody(pointer string, v any, in, open []string) (*expr.Value, map[string]*expr.Text) {
	leaves := map[string]*expr.Text{}
	var walk func(at string, v any) any
	walk = func(at string, v any) any {
		switch v := v.(type) {
		case map[string]any:
			out := make(map[string]any, len(v))
			for k, x := range v {
				out[k] = walk(at+"/"+escape(k), x)
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i, x := range v {
				out[i] = walk(at+"/"+strconv.Itoa(i), x)
			}
			return out
		case string:
			t, err := expr.CompileText(v, expr.Vars(open...))
			if err == nil && len(t.Secrets()) > 0 {
				leaves[at] = b.text(pointer+at, v, open...)
				return masked
			}
		}
		return v
	}
	return b.value(pointer, walk("", v), in...), leaves
}

var (
	configStart = regexp.MustCompile(`^\$\{\s*config\.([A-Za-z_][A-Za-z0-9_]*)\s*\}`)
	hostStart   = regexp.MustCompile(`^https?://[^/?#@\\\s$]+(?:[/?]|$)`)
)

// url compiles a URL template. Scheme and host are literal or come whole from
// config; what follows is escaped by where it stands.
func (b *builder) url(pointer, src string, extra []string) *urlCode {
	c, rest, offset := &urlCode{}, src, 0
	if m := configStart.FindStringSubmatch(src); m != nil {
		c.config, rest, offset = m[1], src[len(m[0]):], len(m[0])
		b.config[m[1]] = true
		if rest != "" && rest[0] != '/' && rest[0] != '?' {
			b.fault(pointer, offset, "what follows ${config.%s} must begin with / or ?", c.config)
			return nil
		}
	}
	if rest != "" {
		c.rest = b.textAt(pointer, rest, offset, slices.Concat([]string{"params", "secret"}, extra)...)
	}
	if c.rest == nil {
		return c
	}
	if c.config == "" && !b.literalHost(pointer, c.rest) {
		return nil
	}
	b.positions(pointer, c, offset)
	return c
}

func (b *builder) literalHost(pointer string, t *expr.Text) bool {
	first := t.Parts[0]
	if first.Kind != expr.Literal || !hostStart.MatchString(first.Text) {
		b.fault(pointer, 0, "a URL begins with http:// or https:// and a host, or with ${config.NAME}; an expression or a user name cannot stand there")
		return false
	}
	if u, err := url.Parse(first.Text); err == nil && len(t.Parts) > 1 && u.Path == "" && !strings.Contains(first.Text, "?") {
		b.fault(pointer, 0, "an expression cannot be part of the host")
		return false
	}
	if err := checkHost(first.Text); err != nil {
		b.fault(pointer, 0, "%v", err)
		return false
	}
	return true
}

// positions notes which parts stand in the query and refuses what has no place.
func (b *builder) positions(pointer string, c *urlCode, offset int) {
	query := false
	for _, p := range c.rest.Parts {
		c.query = append(c.query, query)
		switch {
		case p.Kind == expr.Literal:
			query = query || strings.Contains(p.Text, "?")
			if i := strings.IndexAny(p.Text, "#\\ "); i >= 0 || hasControl(p.Text) {
				b.fault(pointer, offset+p.Offset+max(i, 0), "a URL cannot hold %q here; write it as %%%02X", p.Text[max(i, 0)], p.Text[max(i, 0)])
			}
		case p.Kind == expr.Secret && !query:
			b.fault(pointer, offset+p.Offset, "a secret cannot be part of a path; paths are logged everywhere")
		}
	}
}

func (b *builder) judge(pointer string, j judgeSpec, write bool, names []string) judgeCode {
	if !write {
		for key, src := range map[string]string{"not_done": j.NotDone, "refused": j.Refused} {
			if src != "" {
				b.fault(pointer+"/"+key, 0, "%s is for the request of a tool with effect: write", key)
			}
		}
	}
	c := judgeCode{
		ok:      b.condition(pointer+"/ok", j.OK, names...),
		notDone: b.condition(pointer+"/not_done", j.NotDone, names...),
		refused: b.condition(pointer+"/refused", j.Refused, names...),
	}
	for _, class := range declarable {
		if src := j.Class[class]; src != "" {
			c.class = append(c.class, classCode{class, b.condition(pointer+"/class/"+class, src, names...)})
		}
	}
	for class := range j.Class {
		b.oneOf(pointer+"/class/"+escape(class), class, declarable)
	}
	return c
}

// declarable are the classes a definition may give, in the order in which
// their conditions are tried.
var declarable = []string{ClassDenied, ClassRefused, ClassPermanent, ClassInvalid, ClassIncompatible, ClassTransient}
