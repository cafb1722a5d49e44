package tools

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"regexp"

	"countersign/internal/expr"
)

// Mail is what a frozen request says of a mail. Date and Message-ID are made
// when it is sent: they are the envelope's, not what was approved.
type Mail struct {
	Server   string   `json:"server"` // host:port
	TLS      string   `json:"tls"`
	User     Parts    `json:"user,omitzero"`
	Password Parts    `json:"password,omitzero"`
	From     string   `json:"from"`
	To       []string `json:"to"`
	Subject  string   `json:"subject"`
	Text     string   `json:"text"`
}

func (c *smtpCode) resolve(vars map[string]any) (*Request, error) {
	m := &Mail{TLS: c.spec.TLS}
	r := &Request{Transport: SMTP, TimeoutMS: c.spec.Timeout.Duration().Milliseconds(), Mail: m}
	one := func(_ int, v any) (string, error) { return plain(v) }
	eval := func(what string, t *expr.Text, join func(int, any) (string, error), max int, into *string) error {
		text, err := t.Eval(context.Background(), vars, join)
		if err == nil && len(text) > max {
			err = fmt.Errorf("is %d bytes long; the limit is %d", len(text), max)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		*into = text
		return nil
	}
	var from string
	err := errors.Join(
		eval("server", c.server, one, 300, &m.Server), eval("from", c.from, one, 300, &from),
		eval("subject", c.subject, nil, mailSubjectBytes, &m.Subject), eval("text", c.text, nil, mailTextBytes, &m.Text))
	if err != nil {
		return nil, err
	}
	if _, port, err := net.SplitHostPort(m.Server); err != nil || port == "" {
		return nil, fmt.Errorf("server: %q is not host:port", m.Server)
	}
	if m.From, err = mailAddress(from); err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	for i, t := range c.to {
		var to string
		if err := eval("to", t, one, 300, &to); err != nil {
			return nil, err
		}
		if to, err = mailAddress(to); err != nil {
			return nil, fmt.Errorf("to, number %d: %w", i+1, err)
		}
		m.To = append(m.To, to)
	}
	if hasControl(m.Subject) {
		return nil, errors.New("subject: holds a line break or another control character")
	}
	for into, t := range map[*Parts]*expr.Text{&m.User: c.user, &m.Password: c.password} {
		if t == nil {
			continue
		}
		if *into, err = line(t, vars); err != nil {
			return nil, fmt.Errorf("user or password: %w", err)
		}
	}
	return r, nil
}

// mailAddress reads exactly one address (RFC 5322), so that a parameter cannot
// add a second recipient or a header, and writes it in its one form.
func mailAddress(s string) (string, error) {
	if hasControl(s) {
		return "", errors.New("holds a line break or another control character")
	}
	a, err := mail.ParseAddress(s)
	if err != nil {
		return "", fmt.Errorf("%q is not one e-mail address", s)
	}
	if !plainAddress.MatchString(a.Address) {
		return "", fmt.Errorf("%q needs quotes, or letters that not every server carries, before or after the @; write a domain in its xn-- form", s)
	}
	return a.String(), nil
}

// plainAddress is what stands in a command without quotes (RFC 5321 section
// 4.1.2, Dot-string and Domain): anything else could end the command's path
// early, and the mail would go to another.
var plainAddress = regexp.MustCompile("^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+([.][A-Za-z0-9-]+)*$")
