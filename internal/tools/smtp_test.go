package tools

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/sealed"
)

const mailYAML = `format: 1
tool: mail.send
version: 1
effect: write
risk: medium
params:
  type: object
  additionalProperties: false
  required: [to, subject, body]
  properties:
    to: {type: string}
    subject: {type: string}
    body: {type: string}
summary: "Mail ${params.to}: ${params.subject}"
target: "${params.to}"
smtp:
  server: "${config.smtp}"
  tls: none
  from: "Countersign <noreply@example.org>"
  to: ["${params.to}"]
  subject: "${params.subject}"
  text: "${params.body}"
  timeout: 2s
`

// postOffice is a mail server that follows a script: what it answers to each
// command ("" answers as one in which everything works, "drop" closes the
// connection). It keeps what it was given.
type postOffice struct {
	script map[string]string
	mu     sync.Mutex
	got    []string // commands, and the message under "message:"
}

func (p *postOffice) serve(t *testing.T) Config {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.talk(c)
		}
	}()
	return Config{"smtp": l.Addr().String()}
}

func (p *postOffice) talk(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	if !p.say(c, "GREETING", "220 post office") {
		return
	}
	usual := map[string]string{"EHLO": "250 hello", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go on", "RSET": "250 ok", "QUIT": "221 bye"}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		verb := strings.ToUpper(line[:min(4, len(line))])
		p.keep(strings.TrimSpace(line))
		if !p.say(c, verb, usual[verb]) {
			return
		}
		if verb != "DATA" || p.says("DATA") != "" {
			continue
		}
		message := ""
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if line == ".\r\n" {
				break
			}
			message += line
		}
		p.keep("message:" + message)
		if !p.say(c, "MESSAGE", "250 queued as 7") {
			return
		}
	}
}

func (p *postOffice) say(w io.Writer, when, usual string) bool {
	reply := p.says(when)
	if reply == "drop" {
		return false
	}
	if reply == "" {
		reply = usual
	}
	_, err := fmt.Fprintf(w, "%s\r\n", reply)
	return err == nil
}

func (p *postOffice) says(when string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.script[when]
}

// from is what the post office says to a command from now on.
func (p *postOffice) from(when, says string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script[when] = says
}

func (p *postOffice) keep(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, s)
}

// messages are what was handed over whole.
func (p *postOffice) messages() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.got {
		if m, ok := strings.CutPrefix(s, "message:"); ok {
			out = append(out, m)
		}
	}
	return out
}

const mailParams = `{"to":"Nora <nora@example.org>","subject":"Größe der Lieferung","body":"Your parcel is late.\n.\nSorry, we look for it: ÄÖ."}`

func TestMail_IsHandedOverAsItWasApproved(t *testing.T) {
	office := &postOffice{}
	tool, w := compile(t, mailYAML), world(t)
	o := send(t, w, tool, office.serve(t), mailParams)
	if o.Status != Confirmed || o.Class != "" || !strings.Contains(string(o.Receipt.Body), "queued as 7") {
		t.Fatalf("outcome: %+v", o)
	}
	got := office.messages()
	if len(got) != 1 {
		t.Fatalf("%d messages arrived, want 1: %q", len(got), office.got)
	}
	m, err := mail.ReadMessage(strings.NewReader(strings.ReplaceAll(got[0], "\r\n..", "\r\n.")))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil || strings.ReplaceAll(strings.TrimRight(string(body), "\r\n"), "\r\n", "\n") != "Your parcel is late.\n.\nSorry, we look for it: ÄÖ." {
		t.Errorf("the text is %q, %v", body, err)
	}
	if h := m.Header; h.Get("To") != `"Nora" <nora@example.org>` || h.Get("From") != `"Countersign" <noreply@example.org>` || h.Get("Message-Id") != o.ExternalRef {
		t.Errorf("headers: %v; reference %s", h, o.ExternalRef)
	}
}

func TestMail_WhatTheServersReplyProves(t *testing.T) {
	for name, c := range map[string]struct {
		when, says string
		status     Status
		class      string
		arrived    int
	}{
		"busy greeting":                 {"GREETING", "421 too busy", NotDone, ClassTransient, 0},
		"no greeting":                   {"GREETING", "drop", NotDone, ClassTransient, 0},
		"sender refused":                {"MAIL", "550 not from you", Refused, ClassRefused, 0},
		"recipient unknown":             {"RCPT", "550 no such user", Refused, ClassRefused, 0},
		"recipient greylisted":          {"RCPT", "451 come back later", NotDone, ClassTransient, 0},
		"gone at the recipient":         {"RCPT", "drop", NotDone, ClassTransient, 0},
		"no message wanted":             {"DATA", "554 no", Refused, ClassRefused, 0},
		"message refused":               {"MESSAGE", "554 spam", Refused, ClassRefused, 1},
		"message put off":               {"MESSAGE", "452 disk full", NotDone, ClassTransient, 1},
		"no reply to the message's end": {"MESSAGE", "drop", Unknown, ClassUnknown, 1},
		"sign in first":                 {"MAIL", "530 authentication required", NotDone, ClassDenied, 0},
	} {
		t.Run(name, func(t *testing.T) {
			office := &postOffice{script: map[string]string{c.when: c.says}}
			o := send(t, world(t), compile(t, mailYAML), office.serve(t), mailParams)
			if o.Status != c.status || o.Class != c.class || o.Message == "" {
				t.Errorf("outcome: %s %s %q, want %s %s", o.Status, o.Class, o.Message, c.status, c.class)
			}
			if n := len(office.messages()); n != c.arrived {
				t.Errorf("%d messages left, want %d", n, c.arrived)
			}
		})
	}
}

func TestMail_AllRecipientsOrNone(t *testing.T) {
	office := &postOffice{script: map[string]string{}}
	src := edited(t, mailYAML, `to: ["${params.to}"]`, `to: ["${params.to}", "ops@example.org"]`)
	cfg := office.serve(t)
	if o := send(t, world(t), compile(t, src), cfg, mailParams); o.Status != Confirmed {
		t.Fatalf("both taken: %+v", o)
	}
	office.from("RCPT", "550 no")
	if o := send(t, world(t), compile(t, src), cfg, mailParams); o.Status != Refused || len(office.messages()) != 1 {
		t.Errorf("one refused: %+v; %d messages", o, len(office.messages()))
	}
}

func TestMail_AParameterCannotAddARecipientOrAHeader(t *testing.T) {
	tool := compile(t, mailYAML)
	for _, params := range []string{
		`{"to":"a@example.org, b@example.org","subject":"s","body":"b"}`,
		`{"to":"a@example.org\r\nBcc: b@example.org","subject":"s","body":"b"}`,
		`{"to":"a@example.org","subject":"s\r\nBcc: b@example.org","body":"b"}`,
		`{"to":"\"b@example.org> X=<a\"@example.com","subject":"s","body":"b"}`, `{"to":"\"a b\"@example.org","subject":"s","body":"b"}`,
		`{"to":"a@exämple.org","subject":"s","body":"b"}`, `{"to":"Ana <änä@example.org>","subject":"s","body":"b"}`, `{"to":"a@[192.0.2.1]","subject":"s","body":"b"}`,
		`{"to":"","subject":"s","body":"b"}`, `{"to":"not an address","subject":"s","body":"b"}`,
	} {
		if _, err := tool.Freeze(prepared(t, tool, params), Config{"smtp": "mail.example.org:587"}); err == nil {
			t.Errorf("%s was frozen", params)
		}
	}
	for _, server := range []string{"", "mail.example.org", "mail.example.org:"} {
		if _, err := tool.Freeze(prepared(t, tool, mailParams), Config{"smtp": server}); err == nil {
			t.Errorf("the server %q was taken", server)
		}
	}
}

// What an approver reads in a subject is what its reader reads: a text in the
// form of an encoded word stays that text.
func TestMail_SubjectReadsAsItWasApproved(t *testing.T) {
	for _, subject := range []string{"Invoice 7", "Überweisung", "=?utf-8?q?Pay_now?=", "a =?utf-8?b?UGF5?= b", "x?=", strings.Repeat("=?ü ", 100), strings.Repeat("ü", mailSubjectBytes/2)} {
		raw := (&Mail{Subject: subject, To: slices.Repeat([]string{"<a@example.org>"}, mailToMax)}).bytes("<i>", time.Now())
		for line := range strings.SplitSeq(string(raw), "\r\n") {
			if len(line) > 998 { // RFC 5322 section 2.1.1
				t.Errorf("%q makes a line of %d characters", subject, len(line))
			}
		}
		m, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil || got != subject {
			t.Errorf("%q reads as %q, %v", subject, got, err)
		}
	}
}

func TestMail_DefinitionsThatPromiseTooMuch_AreRefused(t *testing.T) {
	for from, to := range map[string]string{
		"\nsmtp:":          "\nidempotency: {ttl: 1h}\nsmtp:",
		"effect: write":    "effect: read",
		"  tls: none":      "  tls: none\n  user: u\n  password: ${secret.P}",
		"  tls: none\n":    "  tls: maybe\n",
		"  from: \"":       "  user: u\n  from: \"",
		`["${params.to}"]`: "[]",
	} {
		if _, err := Compile("t.yaml", []byte(edited(t, mailYAML, from, to))); err == nil {
			t.Errorf("%q in place of %q was taken", to, from)
		}
	}
}

func TestMail_WithoutTLSWhereItIsAsked_NothingIsSent(t *testing.T) {
	office := &postOffice{}
	o := send(t, world(t), compile(t, edited(t, mailYAML, "  tls: none\n", "")), office.serve(t), mailParams)
	if o.Status != NotDone || !strings.Contains(o.Message, "TLS") || len(office.messages()) != 0 {
		t.Errorf("outcome: %+v", o)
	}
}

func TestMail_AddressesAreCheckedWhenConnecting(t *testing.T) {
	office := &postOffice{}
	w := world(t)
	w.Allow = nil
	o := send(t, w, compile(t, mailYAML), office.serve(t), mailParams)
	if o.Status != Refused || o.Code != CodeAddress || len(office.got) != 0 {
		t.Errorf("outcome: %+v; the server heard %q", o, office.got)
	}
}

func TestMail_ASealedTextReachesTheReaderAlone(t *testing.T) {
	office := &postOffice{}
	tool, w := compile(t, mailYAML), world(t)
	cfg := office.serve(t)
	params := []byte(`{"body":` + noteLeaf + `,"subject":"About ` + "x" + `","to":"a@example.org"}`)
	f, err := tool.Freeze(params, cfg)
	if err != nil || !strings.Contains(string(f), string(noteSeal)) {
		t.Fatalf("frozen: %s, %v", f, err)
	}
	o := w.Send(t.Context(), tool, f, Sending{Key: "k", Effect: "eff_1", Attempt: 1, Params: params, Config: cfg,
		Open: func(context.Context, sealed.Commitment) (any, error) { return secretNote, nil }})
	if got := office.messages(); o.Status != Confirmed || len(got) != 1 || !strings.Contains(got[0], secretNote) {
		t.Errorf("outcome %+v; messages %q", o, got)
	}
}
