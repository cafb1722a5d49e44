package tools

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// relay is a real mail server that wants TLS and a password.
type relay struct{ taken []string }

func (r *relay) NewSession(*smtp.Conn) (smtp.Session, error) { return &delivery{r: r}, nil }

type delivery struct {
	r      *relay
	signed bool
}

func (d *delivery) AuthMechanisms() []string { return []string{sasl.Plain} }

func (d *delivery) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "console" || password != secrets["TOKEN"] {
			return smtp.ErrAuthFailed
		}
		d.signed = true
		return nil
	}), nil
}

func (d *delivery) Mail(string, *smtp.MailOptions) error {
	if !d.signed {
		return smtp.ErrAuthRequired
	}
	return nil
}
func (d *delivery) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (d *delivery) Reset()                               {}
func (d *delivery) Logout() error                        { return nil }
func (d *delivery) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	d.r.taken = append(d.r.taken, string(b))
	return err
}

func TestMail_OverTLSWithAPassword(t *testing.T) {
	https := httptest.NewTLSServer(http.NotFoundHandler())
	defer https.Close()
	roots := x509.NewCertPool()
	roots.AddCert(https.Certificate())
	for _, mode := range tlsModes[:2] {
		t.Run(mode, func(t *testing.T) {
			r := &relay{}
			s := smtp.NewServer(r)
			s.ErrorLog = log.New(io.Discard, "", 0)
			s.TLSConfig = &tls.Config{Certificates: https.TLS.Certificates}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if mode == tlsImplicit {
				l = tls.NewListener(l, s.TLSConfig)
			}
			go func() { _ = s.Serve(l) }()
			t.Cleanup(func() { _ = s.Close() })
			cfg := Config{"smtp": l.Addr().String()}
			src := edited(t, mailYAML, "  tls: none\n", "  tls: "+mode+"\n  user: console\n  password: ${secret.TOKEN}\n")

			w := world(t)
			if o := send(t, w, compile(t, src), cfg, mailParams); o.Status != NotDone || len(r.taken) != 0 {
				t.Errorf("a certificate nobody trusts: %+v", o)
			}
			w.Roots = roots
			o := send(t, w, compile(t, src), cfg, mailParams)
			if o.Status != Confirmed || len(r.taken) != 1 {
				t.Fatalf("outcome: %+v", o)
			}
			wrong := edited(t, src, "user: console", "user: somebody")
			if o := send(t, w, compile(t, wrong), cfg, mailParams); o.Status != NotDone || o.Class != ClassDenied || strings.Contains(o.Message, secrets["TOKEN"]) {
				t.Errorf("a wrong user: %+v", o)
			}
			if len(r.taken) != 1 {
				t.Errorf("%d mails were taken, want 1", len(r.taken))
			}
		})
	}
}
