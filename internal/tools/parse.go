package tools

import (
	"regexp"
	"strconv"
	"time"

	"countersign/internal/canon"
	"countersign/internal/strictyaml"
)

// Limits and defaults of a definition.
const (
	httpTimeoutDefault = 10 * time.Second
	httpTimeoutMax     = 5 * time.Minute
	execTimeoutDefault = 30 * time.Second
	execTimeoutMax     = time.Hour
	fileTimeoutDefault = 10 * time.Second
	settleDefault      = 5 * time.Second
	settleMax          = 24 * time.Hour
	ttlMax             = 90 * 24 * time.Hour
	keyHeaderDefault   = "Idempotency-Key" // draft-ietf-httpapi-idempotency-key-header

	collectFilesDefault = 200
	collectFilesMax     = 5000
	collectBytesDefault = 512 << 10
	collectEachDefault  = 16 << 10
	collectBytesMax     = 16 << 20
)

// Compile reads a definition. The error is strictyaml.Problems: every fault of
// the file at once, each at its place.
func Compile(file string, src []byte) (*Tool, error) {
	root, err := strictyaml.Parse(file, src)
	if err != nil {
		return nil, err
	}
	var p strictyaml.Problems
	s := reader{&p}.tool(root)
	t := build(s, func(pointer string, offset int, format string, args ...any) {
		pos := root.Find(pointer)
		if offset > 0 {
			pos = root.FindOffset(pointer, offset)
		}
		p.Add(pos, format, args...)
	}, true)
	if err := p.Err(); err != nil {
		return nil, err
	}
	return t.seal()
}

// seal fixes the compiled form and its digest.
func (t *Tool) seal() (*Tool, error) {
	compiled, err := canon.Marshal(t.spec)
	if err != nil {
		return nil, err
	}
	t.Compiled, t.Digest = compiled, canon.Digest(compiled)
	return t, nil
}

// reader turns nodes into a spec, reporting wrong shapes and missing keys.
type reader struct{ p *strictyaml.Problems }

func (r reader) tool(root *strictyaml.Node) spec {
	m := root.Map(r.p, "format", "tool", "version", "semantic_version", "title", "effect", "risk", "params", "output",
		"returns", "summary", "target", "impact", "reversible", "editable", "sensitive", "sensitive_output", "http", "exec", "file", "smtp",
		"idempotency", "reconcile", "precondition", "preview", "compensate")
	s := spec{
		Type: compiledType, Format: m.Need("format").Int(r.p),
		Tool: m.Need("tool").String(r.p), Version: m.Need("version").Int(r.p),
		Title: r.text(m, "title"), Effect: m.Need("effect").String(r.p), Risk: m.Need("risk").String(r.p),
		Params: m.Need("params").JSON(r.p), Output: m.Get("output").JSON(r.p), Returns: m.Get("returns").JSON(r.p),
		Summary: m.Need("summary").String(r.p), Target: m.Need("target").String(r.p), Impact: r.text(m, "impact"),
		Editable: m.Get("editable").Strings(r.p), Sensitive: m.Get("sensitive").Strings(r.p), SensitiveOutput: m.Get("sensitive_output").Strings(r.p),
		HTTP: r.http(m.Get("http")), Exec: r.exec(m.Get("exec")), File: r.file(m.Get("file")), SMTP: r.smtp(m.Get("smtp")),
		Reconcile: r.reconcile(m.Get("reconcile")), Precondition: r.reading(m.Get("precondition"), true),
		Preview: r.reading(m.Get("preview"), false), Compensate: r.compensate(m.Get("compensate")),
	}
	if n := m.Get("semantic_version"); n != nil {
		s.SemanticVersion = n.Int(r.p)
	} else if s.Effect == "write" {
		s.SemanticVersion = 1
	}
	if n := m.Get("reversible"); n != nil {
		b := n.Bool(r.p)
		s.Reversible = &b
	}
	if n := m.Get("idempotency"); n != nil {
		im := n.Map(r.p, "header", "ttl")
		s.Idempotency = &idempotencySpec{Header: r.text(im, "header"), TTL: duration(im.Need("ttl").Duration(r.p))}
		if s.Idempotency.Header == "" && s.HTTP != nil {
			s.Idempotency.Header = keyHeaderDefault
		}
	}
	s.defaultConditions()
	return s
}

func (r reader) text(m *strictyaml.Map, key string) string {
	if n := m.Get(key); n != nil {
		return n.String(r.p)
	}
	return ""
}

func (r reader) duration(m *strictyaml.Map, key string, otherwise time.Duration) duration {
	if n := m.Get(key); n != nil {
		return duration(n.Duration(r.p))
	}
	return duration(otherwise)
}

func (r reader) texts(n *strictyaml.Node) map[string]string {
	if n == nil {
		return nil
	}
	m, out := n.Map(r.p), map[string]string{}
	for _, k := range m.Keys() {
		out[k] = m.Get(k).String(r.p)
	}
	return out
}

func (r reader) judge(m *strictyaml.Map) judgeSpec {
	return judgeSpec{OK: r.text(m, "ok"), NotDone: r.text(m, "not_done"), Refused: r.text(m, "refused"), Class: r.texts(m.Get("class"))}
}

func (r reader) http(n *strictyaml.Node) *httpSpec {
	if n == nil {
		return nil
	}
	m := n.Map(r.p, "method", "url", "headers", "body", "timeout", "ok", "not_done", "refused", "class")
	return &httpSpec{
		Method: m.Need("method").String(r.p), URL: m.Need("url").String(r.p), Headers: r.texts(m.Get("headers")),
		Body: m.Get("body").JSON(r.p), Timeout: r.duration(m, "timeout", httpTimeoutDefault), judgeSpec: r.judge(m),
	}
}

func (r reader) exec(n *strictyaml.Node) *execSpec {
	if n == nil {
		return nil
	}
	m := n.Map(r.p, "argv", "env", "dir", "stdout", "allow_dash", "timeout", "ok", "not_done", "refused", "class")
	s := &execSpec{
		Argv: m.Need("argv").Strings(r.p), Env: r.texts(m.Get("env")), Dir: r.text(m, "dir"), Stdout: r.text(m, "stdout"),
		AllowDash: m.Get("allow_dash").Bool(r.p), Timeout: r.duration(m, "timeout", execTimeoutDefault), judgeSpec: r.judge(m),
	}
	if s.Stdout == "" {
		s.Stdout = "json"
	}
	return s
}

func (r reader) file(n *strictyaml.Node) *fileSpec {
	if n == nil {
		return nil
	}
	m := n.Map(r.p, "root", "path", "content", "collect", "timeout")
	s := &fileSpec{Root: m.Need("root").String(r.p), Timeout: r.duration(m, "timeout", fileTimeoutDefault)}
	if c := m.Get("collect"); c != nil {
		s.Collect = r.collect(c)
		for _, k := range []string{"path", "content"} {
			if m.Has(k) {
				r.p.Add(m.KeyPos(k), "%s cannot stand beside collect: a file tool writes one file or collects many", k)
			}
		}
		return s
	}
	s.Path, s.Content = m.Need("path").String(r.p), m.Need("content").String(r.p)
	return s
}

func (r reader) smtp(n *strictyaml.Node) *smtpSpec {
	if n == nil {
		return nil
	}
	m := n.Map(r.p, "server", "tls", "user", "password", "from", "to", "subject", "text", "timeout")
	s := &smtpSpec{Server: m.Need("server").String(r.p), TLS: r.text(m, "tls"), User: r.text(m, "user"), Password: r.text(m, "password"),
		From: m.Need("from").String(r.p), To: m.Need("to").Strings(r.p), Subject: m.Need("subject").String(r.p), Text: m.Need("text").String(r.p),
		Timeout: r.duration(m, "timeout", httpTimeoutDefault)}
	if s.TLS == "" {
		s.TLS = tlsStart
	}
	return s
}

func (r reader) collect(n *strictyaml.Node) *collectSpec {
	m := n.Map(r.p, "folder", "include", "max_files", "max_bytes", "max_bytes_each")
	c := &collectSpec{
		Folder: m.Need("folder").String(r.p), Include: m.Need("include").Strings(r.p), MaxFiles: collectFilesDefault,
		MaxBytes:     r.size(m, "max_bytes", collectBytesDefault),
		MaxBytesEach: r.size(m, "max_bytes_each", collectEachDefault),
	}
	if k := m.Get("max_files"); k != nil {
		c.MaxFiles = k.Int(r.p)
	}
	return c
}

var sizeForm = regexp.MustCompile(`^([1-9][0-9]{0,8})(B|KiB|MiB)$`)

func (r reader) size(m *strictyaml.Map, key string, otherwise int) int {
	n := m.Get(key)
	if n == nil {
		return otherwise
	}
	parts := sizeForm.FindStringSubmatch(n.String(r.p))
	if parts == nil {
		r.p.Add(n.Pos, "%s must be a size such as 512KiB or 2MiB", key)
		return otherwise
	}
	v, err := strconv.Atoi(parts[1])
	if err != nil {
		r.p.Add(n.Pos, "%s is too large", key)
		return otherwise
	}
	return v << map[string]int{"B": 0, "KiB": 10, "MiB": 20}[parts[2]]
}

func (r reader) reconcile(n *strictyaml.Node) *reconcileSpec {
	if n == nil {
		return nil
	}
	m := n.Map(r.p, "http", "exec", "happened", "did_not", "returns", "settle")
	return &reconcileSpec{
		HTTP: r.http(m.Get("http")), Exec: r.exec(m.Get("exec")),
		Happened: m.Need("happened").String(r.p), DidNot: m.Need("did_not").String(r.p),
		Returns: m.Get("returns").JSON(r.p), Settle: r.duration(m, "settle", settleDefault),
	}
}

func (r reader) reading(n *strictyaml.Node, judged bool) *readingSpec {
	if n == nil {
		return nil
	}
	if !judged {
		m := n.Map(r.p, "http", "output")
		return &readingSpec{HTTP: r.http(m.Need("http")), Output: m.Get("output").JSON(r.p)}
	}
	m := n.Map(r.p, "http", "check", "pin")
	return &readingSpec{HTTP: r.http(m.Need("http")), Check: r.text(m, "check"), Pin: r.text(m, "pin")}
}

func (r reader) compensate(n *strictyaml.Node) *compensateSpec {
	if n == nil {
		return nil
	}
	m := n.Map(r.p, "tool", "with")
	return &compensateSpec{Tool: m.Need("tool").String(r.p), With: m.Need("with").JSON(r.p)}
}
