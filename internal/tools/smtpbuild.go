package tools

import (
	"strconv"

	"countersign/internal/expr"
)

// smtpSpec is one plain-text mail. What the server's replies prove follows
// from RFC 5321, so there is nothing to declare about it.
type smtpSpec struct {
	Server   string   `json:"server"`
	TLS      string   `json:"tls"` // starttls, implicit, none
	User     string   `json:"user,omitzero"`
	Password string   `json:"password,omitzero"`
	From     string   `json:"from"`
	To       []string `json:"to"`
	Subject  string   `json:"subject"`
	Text     string   `json:"text"`
	Timeout  duration `json:"timeout_ms"`
}

// How a connection to a mail server is protected.
const (
	tlsStart    = "starttls" // plain at first, and refused where the server offers no TLS
	tlsImplicit = "implicit"
	tlsNone     = "none" // for a relay on this machine
)

var tlsModes = []string{tlsStart, tlsImplicit, tlsNone}

// Limits of a mail.
const (
	mailToMax        = 20
	mailSubjectBytes = 500
	mailTextBytes    = 256 << 10
)

// smtpCode is a mail template ready to be resolved.
type smtpCode struct {
	spec                                        *smtpSpec
	server, user, password, from, subject, text *expr.Text
	to                                          []*expr.Text
}

func (b *builder) smtp(pointer string, s *smtpSpec) *smtpCode {
	b.limit(pointer+"/timeout", s.Timeout, httpTimeoutMax)
	b.oneOf(pointer+"/tls", s.TLS, tlsModes)
	if b.s.Effect != "write" {
		b.fault(pointer, 0, "a mail is sent: write effect: write")
	}
	for key, there := range map[string]bool{"output": b.s.Output != nil, "reconcile": b.s.Reconcile != nil, "idempotency": b.s.Idempotency != nil} {
		if there {
			b.fault("/"+key, 0, "a mail server has no %s: nobody can ask it what it did", key)
		}
	}
	c := &smtpCode{spec: s, server: b.text(pointer+"/server", s.Server, "config"), from: b.text(pointer+"/from", s.From, "config"),
		user: b.text(pointer+"/user", s.User, "config", "secret"), password: b.text(pointer+"/password", s.Password, "secret"),
		subject: b.text(pointer+"/subject", s.Subject, inNames...), text: b.text(pointer+"/text", s.Text, inNames...)}
	if (s.User == "") != (s.Password == "") {
		b.fault(pointer, 0, "user and password belong together")
	}
	if s.User != "" && s.TLS == tlsNone {
		b.fault(pointer+"/tls", 0, "a password is never sent without TLS")
	}
	if len(s.To) == 0 || len(s.To) > mailToMax {
		b.fault(pointer+"/to", 0, "to is a list of 1 to %d addresses", mailToMax)
	}
	for i, src := range s.To {
		c.to = append(c.to, b.text(pointer+"/to/"+strconv.Itoa(i), src, inNames...))
	}
	return c
}
