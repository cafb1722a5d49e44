package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const refundParams = `{"order_id":"7","amount":5}`

var secrets = map[string]string{"SHOP_TOKEN": "shop-token-value", "QUERY": "query value&", "BODY": `body"value`, "TOKEN": "exec-token-value"}

func world(t *testing.T) *World {
	return &World{
		Allow: loopback, LockDir: t.TempDir(), Grace: 100 * time.Millisecond,
		Secrets: func(_ context.Context, name string) (string, error) {
			if v, ok := secrets[name]; ok {
				return v, nil
			}
			return "", errors.New("no such secret")
		},
	}
}

func server(t *testing.T, h http.HandlerFunc) Config {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return Config{"shop": srv.URL}
}

func answering(t *testing.T, status int, body string, headers ...string) Config {
	return server(t, func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func send(t *testing.T, w *World, tool *Tool, cfg Config, params string) Outcome {
	t.Helper()
	p := prepared(t, tool, params)
	f, err := tool.Freeze(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w.Send(t.Context(), tool, f, Sending{Key: "key-1", Effect: "eff_1", Attempt: 1, Config: cfg, Params: p})
}

func TestSend_SendsExactlyTheFrozenRequest(t *testing.T) {
	var got []string
	cfg := server(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = []string{r.Method, r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("X-Order"), r.Header.Get("X-Key"),
			r.Header.Get("Content-Type"), r.Header.Get("Traceparent"), r.Header.Get("Accept-Encoding"), string(b)}
		w.WriteHeader(201)
		_, _ = io.WriteString(w, `{"id":"re_1"}`)
	})
	tool, w := compile(t, refundYAML), world(t)
	p := prepared(t, tool, refundParams)
	f, err := tool.Freeze(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	trace := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	o := w.Send(t.Context(), tool, f, Sending{Key: "key-1", Effect: "eff_1", Config: cfg, Params: p, Trace: trace})
	want := []string{"POST", "/orders/7/refunds?token=query%20value%26&o=7", "Bearer shop-token-value", "7", "key-1", "application/json", trace, "",
		`{"amount":5,"note":"","order":"7","pass":"p-body\"value"}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if o.Status != Confirmed || o.Class != "" || string(o.Output) != `{"id":"re_1"}` || o.ExternalRef != "re_1" || o.Receipt.Status != 201 || o.Receipt.At.IsZero() {
		t.Errorf("%+v", o)
	}
}

func TestSend_OutcomesOfAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   Status
		class  string
		code   string
	}{
		"declared ok":                  {201, `{"id":"a"}`, Confirmed, "", ""},
		"ok without a fitting output":  {201, `{"x":1}`, Confirmed, ClassIncompatible, CodeOutput},
		"ok with text":                 {201, `not json`, Confirmed, ClassIncompatible, CodeOutput},
		"ok with nothing":              {201, ``, Confirmed, ClassIncompatible, CodeOutput},
		"ok with a duplicate name":     {201, `{"id":"a","id":"b"}`, Confirmed, ClassIncompatible, CodeOutput},
		"declared not done":            {429, ``, NotDone, ClassTransient, ""},
		"declared refused":             {409, `{}`, Refused, ClassRefused, ""},
		"refused, by the table denied": {403, `{}`, Refused, ClassDenied, ""},
		"refused, class declared":      {400, `{}`, Refused, ClassInvalid, ""},
		"undeclared 200":               {200, `{"id":"a"}`, Unknown, ClassUnknown, ""},
		"undeclared 302":               {302, ``, Unknown, ClassUnknown, ""},
		"undeclared 401":               {401, ``, Unknown, ClassUnknown, ""},
		"undeclared 408":               {408, ``, Unknown, ClassUnknown, ""},
		"undeclared 422":               {422, ``, Unknown, ClassUnknown, ""},
		"undeclared 500":               {500, ``, Unknown, ClassUnknown, ""},
		"undeclared 504":               {504, ``, Unknown, ClassUnknown, ""},
	} {
		o := send(t, world(t), compile(t, refundYAML), answering(t, c.status, c.body), refundParams)
		if o.Status != c.want || o.Class != c.class || o.Code != c.code || o.Receipt.Status != c.status || o.Message == "" {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestSend_ContradictingConditionsProveNothing(t *testing.T) {
	tool := compile(t, edited(t, refundYAML, "[400, 403, 409]", "[201, 400]"))
	if o := send(t, world(t), tool, answering(t, 201, `{"id":"a"}`), refundParams); o.Status != Unknown {
		t.Errorf("%+v", o)
	}
}

func TestSend_AConditionThatCannotBeEvaluatedProvesNothing(t *testing.T) {
	tool := compile(t, edited(t, refundYAML, `"status == 201"`, `"body.state == 'done'"`))
	o := send(t, world(t), tool, answering(t, 201, `{"id":"a"}`), refundParams)
	if o.Status != Unknown || !strings.Contains(o.Message, "could not be evaluated") {
		t.Errorf("%+v", o)
	}
	if o := send(t, world(t), tool, answering(t, 409, `{}`), refundParams); o.Status != Refused {
		t.Errorf("the refusal still counts: %+v", o)
	}
}

func TestSend_DefaultOKOfAWriteLeavesAcceptedOut(t *testing.T) {
	tool := compile(t, edited(t, refundYAML, "  ok: \"status == 201\"\n", ""))
	for status, want := range map[int]Status{200: Confirmed, 201: Confirmed, 204: Confirmed, 202: Unknown, 302: Unknown} {
		if o := send(t, world(t), tool, answering(t, status, ""), refundParams); o.Status != want {
			t.Errorf("%d: %+v", status, o)
		}
	}
}

func TestSend_NothingLeftIsNotDone(t *testing.T) {
	tool := compile(t, refundYAML)
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	if o := send(t, world(t), tool, Config{"shop": srv.URL}, refundParams); o.Status != NotDone || o.Class != ClassTransient {
		t.Errorf("nobody listens: %+v", o)
	}
	w := world(t)
	w.Allow = nil
	if o := send(t, w, tool, answering(t, 201, "{}"), refundParams); o.Status != Refused || o.Class != ClassDenied || o.Code != CodeAddress || !strings.Contains(o.Message, "loopback") {
		t.Errorf("address: %+v", o)
	}
	w = world(t)
	cfg := answering(t, 201, "{}")
	w.Own = []netip.AddrPort{netip.MustParseAddrPort(strings.TrimPrefix(cfg["shop"], "http://"))}
	if o := send(t, w, tool, cfg, refundParams); o.Status != Refused || !strings.Contains(o.Message, "own") {
		t.Errorf("own listener: %+v", o)
	}
	w = world(t)
	w.Secrets = func(context.Context, string) (string, error) { return "", errors.New("vault says shop-token-value") }
	if o := send(t, w, tool, cfg, refundParams); o.Status != NotDone || o.Code != CodeSecret || strings.Contains(o.Message, "vault") {
		t.Errorf("secret: %+v", o)
	}
	w.Secrets = func(context.Context, string) (string, error) { return "a\r\nX-Evil: 1", nil }
	if o := send(t, w, tool, cfg, refundParams); o.Status != NotDone {
		t.Errorf("a secret with a line break: %+v", o)
	}
}

func TestSend_ALostAnswerIsUnknownAndSentOnce(t *testing.T) {
	tool := compile(t, edited(t, refundYAML, "timeout: 2s", "timeout: 100ms"))
	var n atomic.Int32
	release := make(chan struct{})
	cfg := server(t, func(w http.ResponseWriter, r *http.Request) { n.Add(1); <-release })
	defer close(release)
	if o := send(t, world(t), tool, cfg, refundParams); o.Status != Unknown || o.Class != ClassUnknown || o.Code != CodeNoAnswer {
		t.Errorf("%+v", o)
	}
	drop := server(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		panic(http.ErrAbortHandler)
	})
	if o := send(t, world(t), tool, drop, refundParams); o.Status != Unknown {
		t.Errorf("%+v", o)
	}
	if n.Load() != 2 {
		t.Errorf("%d requests, want 2", n.Load())
	}
}

func TestSend_ACutAnswerConfirmsOnlyWhereOKLooksAtTheStatusAlone(t *testing.T) {
	cut := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(201)
		_, _ = io.WriteString(w, `{"id":"a"`)
	}
	o := send(t, world(t), compile(t, refundYAML), server(t, cut), refundParams)
	if o.Status != Confirmed || !o.Receipt.Incomplete || o.Code != CodeOutput {
		t.Errorf("by status: %+v", o)
	}
	byBody := compile(t, edited(t, refundYAML, `"status == 201"`, `"status == 201 && has(body.id)"`))
	if o := send(t, world(t), byBody, server(t, cut), refundParams); o.Status != Unknown || !o.Receipt.Incomplete {
		t.Errorf("by body: %+v", o)
	}
	big := answering(t, 201, `{"id":"`+strings.Repeat("x", ResponseBytesMax)+`"}`)
	if o := send(t, world(t), compile(t, refundYAML), big, refundParams); o.Status != Confirmed || !o.Receipt.Incomplete || len(o.Receipt.Body) > ReceiptBytes {
		t.Errorf("too long: %s %v %d", o.Status, o.Receipt.Incomplete, len(o.Receipt.Body))
	}
}

func TestSend_MasksSecretsThatAreEchoed(t *testing.T) {
	var log bytes.Buffer
	w := world(t)
	w.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", r.Header.Get("Authorization"))
		w.WriteHeader(201)
		b, _ := io.ReadAll(r.Body)
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "a", "url": r.URL.String(), "auth": r.Header.Get("Authorization"), "sent": string(b)})
	})
	o := send(t, w, compile(t, refundYAML), cfg, refundParams)
	all, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if o.Status != Confirmed || !strings.Contains(string(all), masked) {
		t.Errorf("%s", all)
	}
	for name, v := range secrets {
		for _, text := range []string{string(all), log.String()} {
			if strings.Contains(text, v) || strings.Contains(text, queryText(v)) || strings.Contains(text, strings.ReplaceAll(v, `"`, `\\\"`)) {
				t.Errorf("%s is shown in %s", name, text)
			}
		}
	}
	if !strings.Contains(log.String(), "idempotency_key=key-1") || strings.Contains(log.String(), "order") {
		t.Errorf("log: %s", log.String())
	}
}

func TestSend_KeepsRetryAfterAndAnInformativeMessage(t *testing.T) {
	o := send(t, world(t), compile(t, refundYAML), answering(t, 429, "", "Retry-After", "7"), refundParams)
	if o.RetryAfter != 7*time.Second || o.Message != "The target answered 429 Too Many Requests." {
		t.Errorf("%+v", o)
	}
	o = send(t, world(t), compile(t, refundYAML), answering(t, 307, "", "Location", "http://other.example/"), refundParams)
	if o.Status != Unknown || !strings.Contains(o.Message, "redirect") {
		t.Errorf("%+v", o)
	}
}

func TestSend_RefusesARequestThatIsNotTheTools(t *testing.T) {
	http, file := compile(t, refundYAML), compile(t, fileYAML)
	f := frozen(t, file, `{"page":"a","body":"b"}`, Config{"kb": t.TempDir()})
	for _, o := range []Outcome{
		world(t).Send(t.Context(), http, f, Sending{Key: "k"}),
		world(t).Send(t.Context(), http, Frozen("{}"), Sending{Key: "k"}),
		world(t).Send(t.Context(), http, frozen(t, http, refundParams, shopConfig), Sending{}),
	} {
		if o.Status != NotDone {
			t.Errorf("%+v", o)
		}
	}
	if o := world(t).Call(t.Context(), http, f, Sending{}); o.Status == Confirmed || o.Class != ClassBug {
		t.Errorf("%+v", o)
	}
}

const readYAML = `format: 1
tool: shop.order
version: 1
effect: read
risk: low
params: {type: object, additionalProperties: false, properties: {id: {type: string}}}
output: {type: object, required: [state]}
returns: {state: "${body.state}", via: "${headers['x-via']}", asked: "${params.id}"}
summary: "Look up ${params.id}"
target: "order ${params.id}"
http: {method: GET, url: "${config.shop}/orders/${params.id}", class: {transient: "status == 404"}}
`

func TestCall_OutcomesOfARead(t *testing.T) {
	tool := compile(t, readYAML)
	call := func(cfg Config) Outcome {
		p := prepared(t, tool, `{"id":"7"}`)
		return world(t).Call(t.Context(), tool, frozen(t, tool, `{"id":"7"}`, cfg), Sending{Config: cfg, Params: p})
	}
	o := call(answering(t, 200, `{"state":"paid"}`, "X-Via", "v"))
	if o.Status != Confirmed || string(o.Output) != `{"asked":"7","state":"paid","via":"v"}` {
		t.Errorf("%+v %s", o, o.Output)
	}
	for status, class := range map[int]string{302: ClassPermanent, 400: ClassPermanent, 401: ClassDenied, 403: ClassDenied, 404: ClassTransient, 408: ClassTransient,
		422: ClassPermanent, 425: ClassTransient, 429: ClassTransient, 500: ClassTransient, 503: ClassTransient} {
		if o := call(answering(t, status, `{"state":"paid"}`)); o.Status != Failed || o.Class != class {
			t.Errorf("%d: %+v", status, o)
		}
	}
	if o := call(answering(t, 200, `{"other":1}`)); o.Status != Failed || o.Class != ClassIncompatible || o.Output != nil {
		t.Errorf("output: %+v", o)
	}
	if o := call(answering(t, 200, strings.Repeat("x", ResponseBytesMax+1))); o.Status != Failed || o.Class != ClassPermanent {
		t.Errorf("too long: %s %s", o.Status, o.Class)
	}
	if o := call(Config{"shop": "http://127.0.0.1:1"}); o.Status != Failed || o.Class != ClassTransient {
		t.Errorf("nobody: %+v", o)
	}
	if o := call(Config{"shop": "http://10.0.0.1"}); o.Status != Failed || o.Class != ClassDenied {
		t.Errorf("address: %+v", o)
	}
}

func TestStatusClass_IsTheTableOfTheDesign(t *testing.T) {
	for status, want := range map[int]string{200: "", 299: "", 301: ClassPermanent, 400: ClassPermanent, 401: ClassDenied, 403: ClassDenied, 404: ClassPermanent,
		408: ClassTransient, 409: ClassPermanent, 425: ClassTransient, 429: ClassTransient, 451: ClassPermanent, 500: ClassTransient, 599: ClassTransient} {
		if got := StatusClass(status); got != want {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
	}
}
