package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/expr"
	"countersign/internal/problem"
	"countersign/internal/schema"
)

// Params returns the schema of the parameters.
func (t *Tool) Params() *schema.Schema { return t.code.params }

// OutputSchema returns the schema of the output, or nil.
func (t *Tool) OutputSchema() *schema.Schema { return t.code.output }

// Lint returns what the definition allows but rarely means.
func (t *Tool) Lint() []string { return t.code.params.Lint() }

// PrepareParams applies defaults, validates and returns the canonical form:
// what is hashed, shown and carried out. The error is a *problem.Error whose
// fields point into the parameters.
func (t *Tool) PrepareParams(v json.RawMessage) (json.RawMessage, error) {
	c, err := canon.Canonical(v, canon.Limits{})
	if err != nil {
		return nil, err
	}
	x, err := canon.Value(c)
	if err != nil {
		return nil, err
	}
	if x, err = t.code.params.WithDefaults(x); err != nil {
		return nil, err
	}
	if err := t.code.params.Validate(x); err != nil {
		return nil, err
	}
	return canon.Marshal(x)
}

// Describe computes summary, target and impact from the parameters.
func (t *Tool) Describe(params json.RawMessage, cfg Config) (Description, error) {
	vars, err := inVars(params, cfg)
	if err != nil {
		return Description{}, err
	}
	var d Description
	for _, x := range []struct {
		name string
		text *expr.Text
		into *string
	}{{"summary", t.code.summary, &d.Summary}, {"target", t.code.target, &d.Target}, {"impact", t.code.impact, &d.Impact}} {
		if x.text == nil {
			continue
		}
		if *x.into, err = x.text.Eval(context.Background(), vars, nil); err != nil {
			return Description{}, t.cannot(x.name, err)
		}
	}
	return d, nil
}

// Freeze makes the request that will be sent, with everything resolved but
// secrets. params must come from PrepareParams. The same params and config
// give the same bytes.
func (t *Tool) Freeze(params json.RawMessage, cfg Config) (Frozen, error) {
	vars, err := inVars(params, cfg)
	if err != nil {
		return nil, err
	}
	r, err := t.request(params, vars)
	if err != nil {
		return nil, t.cannot("request", err)
	}
	return r.freeze()
}

// request resolves the tool's own template.
func (t *Tool) request(params json.RawMessage, vars map[string]any) (*Request, error) {
	switch t.Transport {
	case HTTP:
		r, err := t.code.http.resolve(vars)
		if err == nil && t.Write {
			r.KeyHeader = keyHeaderDefault
			if i := t.spec.Idempotency; i != nil {
				r.KeyHeader = i.Header
			}
		}
		return r, err
	case Exec:
		return t.code.exec.resolve(params, vars)
	default:
		return t.code.file.resolve(vars)
	}
}

func (t *Tool) cannot(what string, err error) error {
	return problem.New(problem.Invalid, "tool_"+what, "The %s of %s cannot be made from these parameters: %s.", what, t.Name, strings.TrimSuffix(err.Error(), ".")).Because(err)
}

func inVars(params json.RawMessage, cfg Config) (map[string]any, error) {
	p, err := canon.Value(params)
	if err != nil {
		return nil, fmt.Errorf("read params: %w", err)
	}
	c := make(map[string]any, len(cfg))
	for k, v := range cfg {
		c[k] = v
	}
	return map[string]any{"params": p, "config": c}, nil
}

// plain is a value as text where structure has no place: URLs, headers,
// arguments, variables, file names.
func plain(v any) (string, error) {
	switch v.(type) {
	case nil:
		return "", errors.New("is null")
	case map[string]any, []any:
		return "", errors.New("is not a single value")
	}
	return expr.Format(v)
}

// parts resolves a text. escape sees the value of each expression.
func parts(t *expr.Text, vars map[string]any, escape func(part int, v any) (string, error)) (Parts, error) {
	if t == nil {
		return Parts{{}}, nil
	}
	values, err := t.Values(context.Background(), vars)
	if err != nil {
		return nil, err
	}
	var out Parts
	for i, p := range t.Parts {
		text := p.Text
		switch p.Kind {
		case expr.Secret:
			out = append(out, Part{Secret: p.Text})
			continue
		case expr.Expression:
			if text, err = escape(i, values[i]); err != nil {
				return nil, fmt.Errorf("${%s} %w", strings.TrimSpace(p.Text), err)
			}
		}
		if n := len(out); n > 0 && out[n-1].Secret == "" {
			out[n-1].Text += text
		} else {
			out = append(out, Part{Text: text})
		}
	}
	return out, nil
}

// line resolves a text that must stay one line without control characters.
func line(t *expr.Text, vars map[string]any) (Parts, error) {
	p, err := parts(t, vars, func(_ int, v any) (string, error) { return plain(v) })
	if err != nil {
		return nil, err
	}
	if s := p.String(); hasControl(s) {
		return nil, errors.New("holds a line break or another control character")
	}
	return p, nil
}

func (c *httpCode) resolve(vars map[string]any) (*Request, error) {
	r := &Request{Transport: HTTP, Method: c.spec.Method, TimeoutMS: c.spec.Timeout.Duration().Milliseconds(), Headers: map[string]Parts{}}
	var err error
	if r.URL, err = c.url.resolve(vars); err != nil {
		return nil, fmt.Errorf("the URL: %w", err)
	}
	for name, t := range c.headers {
		if r.Headers[name], err = line(t, vars); err != nil {
			return nil, fmt.Errorf("the header %s: %w", name, err)
		}
		if s := r.Headers[name].String(); strings.TrimSpace(s) != s {
			return nil, fmt.Errorf("the header %s: begins or ends with a space, which would not be sent", name)
		}
	}
	if c.body == nil {
		return r, nil
	}
	v, err := c.body.Eval(context.Background(), vars)
	if err != nil {
		return nil, fmt.Errorf("the body: %w", err)
	}
	for at, t := range c.leaves {
		if r.BodySecrets == nil {
			r.BodySecrets = map[string]Parts{}
		}
		if r.BodySecrets[at], err = parts(t, vars, func(_ int, v any) (string, error) { return plain(v) }); err != nil {
			return nil, fmt.Errorf("the body at %s: %w", at, err)
		}
	}
	r.Body, err = canon.Marshal(v)
	return r, err
}

func (c *urlCode) resolve(vars map[string]any) (Parts, error) {
	base := ""
	if c.config != "" {
		v, ok := vars["config"].(map[string]any)[c.config].(string)
		if !ok || v == "" {
			return nil, fmt.Errorf("config.%s is not set", c.config)
		}
		if err := checkBase(v); err != nil {
			return nil, fmt.Errorf("config.%s %w", c.config, err)
		}
		base = strings.TrimRight(v, "/")
	}
	if c.rest == nil {
		return Parts{{Text: base}}, nil
	}
	p, err := parts(c.rest, vars, func(i int, v any) (string, error) {
		text, err := plain(v)
		if err != nil {
			return "", err
		}
		if c.query[i] {
			return queryText(text), nil
		}
		return pathText(text)
	})
	if err != nil {
		return nil, err
	}
	p = append(Parts{{Text: base}}, p...)
	if len(p) > 1 && p[1].Secret == "" {
		p = append(Parts{{Text: base + p[1].Text}}, p[2:]...)
	}
	return p, checkURL(p)
}

// queryText escapes everything but unreserved characters (RFC 3986).
func queryText(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// pathText escapes a value that is one segment, or part of one. What would
// climb, even once a server has decoded it, is refused.
func pathText(s string) (string, error) {
	if s == "" {
		return "", errors.New("is empty; the path would name something else")
	}
	if hasControl(s) {
		return "", errors.New("holds a control character")
	}
	for seg := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '/' || r == '\\' }) {
		if seg == "." || seg == ".." {
			return "", fmt.Errorf("holds the path part %q", seg)
		}
	}
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20"), nil
}

// checkURL reads the whole URL as the transport will, with a stand-in for
// secrets.
func checkURL(p Parts) error {
	text, err := p.fill(func(string) (string, error) { return "s", nil })
	if err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("is not a URL")
	}
	if u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("is not an http or https URL without a user name")
	}
	for seg := range strings.SplitSeq(u.Path, "/") {
		if seg == "." || seg == ".." {
			return fmt.Errorf("has the path part %q", seg)
		}
	}
	return nil
}

// checkBase checks a config value that is the beginning of a URL.
func checkBase(v string) error {
	u, err := url.Parse(v)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || hasControl(v) || strings.ContainsAny(v, " \\"):
		return errors.New("is not an http or https URL")
	case u.User != nil:
		return errors.New("has a user name or password in it; use a header with ${secret.NAME}")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(v, "#"):
		return errors.New("has a query or a fragment; it can only be scheme, host and a path in front")
	}
	if err := checkURL(Parts{{Text: v}}); err != nil {
		return err
	}
	return checkHost(v)
}

// checkHost refuses hosts that look like others.
func checkHost(v string) error {
	u, err := url.Parse(v)
	if err != nil {
		return errors.New("is not a URL")
	}
	if strings.ContainsFunc(u.Host, func(r rune) bool { return r > 0x7e }) {
		return fmt.Errorf("the host %q is not ASCII; write its xn-- form", u.Host)
	}
	return nil
}

func (c *execCode) resolve(params json.RawMessage, vars map[string]any) (*Request, error) {
	r := &Request{Transport: Exec, TimeoutMS: c.spec.Timeout.Duration().Milliseconds(), Env: map[string]Parts{}, Stdin: params}
	free := c.spec.AllowDash
	for i, t := range c.argv {
		p, err := parts(t, vars, func(_ int, v any) (string, error) { return plain(v) })
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
		arg := p.String()
		declared := t == nil || t.Parts[0].Kind == expr.Literal
		switch {
		case strings.ContainsRune(arg, 0):
			return nil, fmt.Errorf("argument %d: holds a null character", i)
		case i > 0 && strings.HasPrefix(arg, "-") && !declared && !free:
			return nil, fmt.Errorf("argument %d: %q would be read as an option", i, arg)
		}
		free = free || i > 0 && t != nil && literal(t) && arg == "--"
		r.Argv = append(r.Argv, arg)
	}
	if err := checkProgram(r.Argv[0]); err != nil {
		return nil, err
	}
	var err error
	for name, t := range c.env {
		if r.Env[name], err = parts(t, vars, func(_ int, v any) (string, error) { return plain(v) }); err != nil {
			return nil, fmt.Errorf("the variable %s: %w", name, err)
		}
		if strings.ContainsRune(r.Env[name].String(), 0) {
			return nil, fmt.Errorf("the variable %s: holds a null character", name)
		}
	}
	if r.Dir, err = folder(c.dir, vars, "/"); err != nil {
		return nil, fmt.Errorf("dir: %w", err)
	}
	return r, nil
}

func checkProgram(name string) error {
	if name == "" || strings.Contains(name, "/") && name[0] != '/' || name[0] == '-' {
		return fmt.Errorf("the program %q is neither an absolute path nor a bare name", name)
	}
	return nil
}

// folder resolves an absolute folder.
func folder(t *expr.Text, vars map[string]any, otherwise string) (string, error) {
	if t == nil {
		return otherwise, nil
	}
	dir, err := t.Eval(context.Background(), vars, func(_ int, v any) (string, error) { return plain(v) })
	if err != nil {
		return "", err
	}
	return dir, checkRoot(dir)
}

func (c *fileCode) resolve(vars map[string]any) (*Request, error) {
	r := &Request{Transport: File, TimeoutMS: c.spec.Timeout.Duration().Milliseconds()}
	var err error
	if r.Root, err = folder(c.root, vars, ""); err != nil {
		return nil, fmt.Errorf("root: %w", err)
	}
	one := func(_ int, v any) (string, error) { return plain(v) }
	if c.spec.Collect != nil {
		s := *c.spec.Collect
		if s.Folder, err = c.folder.Eval(context.Background(), vars, one); err != nil {
			return nil, fmt.Errorf("folder: %w", err)
		}
		r.Collect = &s
		return r, checkFolder(s.Folder)
	}
	if r.Path, err = c.path.Eval(context.Background(), vars, one); err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	if err := checkPath(r.Path); err != nil {
		return nil, err
	}
	content := ""
	if c.content != nil {
		if content, err = c.content.Eval(context.Background(), vars, nil); err != nil {
			return nil, fmt.Errorf("content: %w", err)
		}
	}
	if len(content) > FileBytesMax {
		return nil, fmt.Errorf("the content is %d bytes long; the limit is %d", len(content), FileBytesMax)
	}
	r.Content = &content
	return r, nil
}
