package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"countersign/internal/canon"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// carrySMTP hands one mail to a server. Until the end of the message has left,
// nothing happened; after it only the server's reply proves anything (RFC 5321
// section 4.2.5). A recipient that is refused means that nobody gets it.
func (w *World) carrySMTP(ctx context.Context, t *Tool, r *Request, s Sending, vars map[string]any) Outcome {
	auth, err := w.credentials(ctx, r.Mail, s.mask)
	if err != nil {
		return unmade(err, s.mask)
	}
	c, err := w.dialMail(ctx, r.Mail)
	if err != nil {
		return notLeft(err, s.mask)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	data, err := envelope(c, auth, r.Mail)
	if err != nil {
		return w.mailRefused(err, s.mask)
	}
	id := messageID(s.Key)
	_, err = data.Write(r.Mail.bytes(id, w.now()))
	if err != nil {
		return Outcome{}.as(NotDone, ClassTransient, "the connection broke before the whole mail had left: "+s.mask.text(err.Error()))
	}
	said, err := data.CloseWithResponse() // the end of the message leaves here
	if refused, ok := errors.AsType[*smtp.SMTPError](err); ok {
		return w.mailRefused(refused, s.mask)
	}
	if err != nil {
		return Outcome{}.as(Unknown, ClassUnknown, "the mail left and no reply came: "+s.mask.text(err.Error())).coded(CodeNoAnswer)
	}
	_ = c.Quit() // it is taken; whether the goodbye arrives does not matter
	return t.mailTaken(ctx, s, id, said.StatusText, vars, w.now())
}

// credentials fetches user and password; nil where the server asks for none.
func (w *World) credentials(ctx context.Context, m *Mail, hide *mask) (sasl.Client, error) {
	if m.User == nil {
		return nil, nil
	}
	get := w.open(ctx, hide)
	user, err := m.User.fill(get)
	if err != nil {
		return nil, err
	}
	password, err := m.Password.fill(get)
	return sasl.NewPlainClient("", user, password), err
}

// dialMail connects and starts TLS.
func (w *World) dialMail(ctx context.Context, m *Mail) (*smtp.Client, error) {
	host, _, err := net.SplitHostPort(m.Server)
	if err != nil {
		return nil, err
	}
	refused := &refusal{}
	dialer := &net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		err := w.reachText(address)
		if err != nil {
			refused.err.Store(&err)
		}
		return err
	}}
	conn, err := dialer.DialContext(ctx, "tcp", m.Server)
	if why := refused.err.Load(); err != nil && why != nil {
		return nil, *why
	}
	if err != nil {
		return nil, err
	}
	if until, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(until)
	}
	secure := &tls.Config{ServerName: host, RootCAs: w.Roots, MinVersion: tls.VersionTLS12}
	var c *smtp.Client
	switch m.TLS {
	case tlsStart:
		c, err = smtp.NewClientStartTLS(conn, secure)
	case tlsImplicit:
		c = smtp.NewClient(tls.Client(conn, secure))
	default:
		c = smtp.NewClient(conn)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("the server offers no TLS that can be trusted: %w", err)
	}
	if left := time.Until(deadlineOf(ctx)); left > 0 {
		c.CommandTimeout, c.SubmissionTimeout = left, left
	}
	return c, nil
}

func deadlineOf(ctx context.Context) time.Time {
	until, _ := ctx.Deadline()
	return until
}

// envelope says from whom and to whom, and begins the message.
func envelope(c *smtp.Client, auth sasl.Client, m *Mail) (*smtp.DataCommand, error) {
	if auth != nil {
		if err := c.Auth(auth); err != nil {
			return nil, fmt.Errorf("sign in: %w", err)
		}
	}
	from, err := mail.ParseAddress(m.From)
	if err != nil {
		return nil, err
	}
	if err := c.Mail(from.Address, nil); err != nil {
		return nil, fmt.Errorf("sender %s: %w", from.Address, err)
	}
	for _, text := range m.To {
		to, err := mail.ParseAddress(text)
		if err != nil {
			return nil, err
		}
		if err := c.Rcpt(to.Address, nil); err != nil {
			_ = c.Reset()
			return nil, fmt.Errorf("recipient %s: %w", to.Address, err)
		}
	}
	return c.Data()
}

// mailRefused is the outcome of what the server said no to, or of a connection
// that broke before the message's end had left: a 5xx reply is final, anything
// else may be tried again.
func (w *World) mailRefused(err error, hide *mask) Outcome {
	text := "nothing was sent: " + hide.text(err.Error())
	said, ok := errors.AsType[*smtp.SMTPError](err)
	switch {
	case !ok || said.Temporary():
		return Outcome{}.as(NotDone, ClassTransient, text)
	case said.Code == 530 || said.Code == 534 || said.Code == 535 || said.Code == 538: // RFC 4954: who we are
		return Outcome{}.as(NotDone, ClassDenied, text)
	}
	o := Outcome{}.as(Refused, ClassRefused, text)
	o.Receipt.Status = said.Code
	return o
}

// mailTaken is the outcome of a mail that the server took over.
func (t *Tool) mailTaken(ctx context.Context, s Sending, id, said string, vars map[string]any, at time.Time) Outcome {
	out := map[string]any{"message_id": id, "reply": s.mask.text(strings.ToValidUTF8(said, "�"))}
	a := answer{what: "the mail server took the mail", natural: out, receipt: Receipt{Status: 250, At: at, ExternalRef: id}}
	a.vars = map[string]any{"params": vars["params"], "config": vars["config"], "body": out, "result": map[string]any{"body": out}}
	if body, err := canon.Marshal(out); err == nil {
		a.receipt.Body, a.receipt.BodyDigest = body, digestOf(body)
	}
	return t.confirm(ctx, Outcome{}, t.code.returns, a)
}

// messageID is the same for every try of one key: a reader that gets the mail
// twice can tell, and so can who looks into the server's log.
func messageID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "<" + hex.EncodeToString(sum[:16]) + "@countersign.invalid>"
}

// encodedWordMax is how much of a text one encoded word takes: it has at most 75
// characters (RFC 2047 section 2).
const encodedWordMax = 45

// headerText is a text as encoded words where it is not plain ASCII, or could be
// taken for one of them.
func headerText(s string) string {
	if !strings.Contains(s, "=?") {
		return mime.QEncoding.Encode("utf-8", s)
	}
	var words []string
	for len(s) > 0 {
		n := min(len(s), encodedWordMax)
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(words, " ")
}

// bytes is the message (RFC 5322): one part of plain text.
func (m *Mail) bytes(id string, at time.Time) []byte {
	var b bytes.Buffer
	for _, h := range [][2]string{{"From", m.From}, {"To", strings.Join(m.To, ",\r\n ")}, {"Subject", headerText(m.Subject)},
		{"Date", at.Format(time.RFC1123Z)}, {"Message-ID", id}, {"MIME-Version", "1.0"}, {"Auto-Submitted", "auto-generated"},
		{"Content-Type", "text/plain; charset=utf-8"}, {"Content-Transfer-Encoding", "quoted-printable"}} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], strings.ReplaceAll(h[1], "?= =?", "?=\r\n =?")) // folded: no line may be long
	}
	b.WriteString("\r\n")
	q := quotedprintable.NewWriter(&b)
	_, _ = q.Write([]byte(m.Text)) // a buffer takes everything
	_ = q.Close()
	return b.Bytes()
}
