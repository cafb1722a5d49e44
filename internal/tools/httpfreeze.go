package tools

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"countersign/internal/canon"
)

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
		base = v
	}
	if c.rest == nil {
		return Parts{{Text: base}}, nil
	}
	if strings.HasPrefix(c.rest.Source(), "/") {
		base = strings.TrimRight(base, "/")
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
	if len(p) > 1 && p[1].plain() {
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
