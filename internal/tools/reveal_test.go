package tools

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"countersign/internal/sealed"
)

const secretNote = "DE89 3704/0044"

var (
	noteSeal = sealed.Commitment(sealed.Prefix + strings.Repeat("5e", 32))
	noteLeaf = `{"$commit":"` + string(noteSeal) + `"}`
)

func opensNote(_ context.Context, c sealed.Commitment) (any, error) {
	if c != noteSeal {
		return nil, errors.New("not here")
	}
	return secretNote, nil
}

// sealedNote is the refund's parameters with a sealed note.
func sealedNote() []byte { return []byte(`{"amount":5,"note":` + noteLeaf + `,"order_id":"4180"}`) }

func TestSend_SealedValuesArePutInPlaceAndAnEchoIsHidden(t *testing.T) {
	src := edited(t, refundYAML, `body: {order: "${params.order_id}", amount: "${params.amount}", note: "${params.note}", pass: "p-${secret.BODY}"}`, `body: {whole: "${params.note}", text: "note: ${params.note}", secret: "${secret.SHOP_TOKEN} ${params.note}"}`)
	src = edited(t, src, `/orders/${params.order_id}/refunds?token=${secret.QUERY}&o=${params.order_id}"`, `/refunds/${params.note}?n=${params.note}"`)
	src = edited(t, src, `headers: {Authorization: "Bearer ${secret.SHOP_TOKEN}", X-Order`, `headers: {Authorization: "Bearer ${secret.SHOP_TOKEN}", X-Note: "${params.note}", X-Order`)
	tool, w := compile(t, src), world(t)
	var got, path, header string
	cfg := server(t, func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, path, header = string(b), r.URL.EscapedPath()+"?"+r.URL.RawQuery, r.Header.Get("X-Note")
		rw.WriteHeader(201)
		_, _ = rw.Write([]byte(`{"id":"re_1","state":"done","note":"` + secretNote + `","said":"about ` + secretNote + `"}`))
	})
	params := sealedNote()
	f, err := tool.Freeze(params, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(f), secretNote) || strings.Count(string(f), string(noteSeal)) < 5 {
		t.Fatalf("the frozen request: %s", f)
	}
	o := w.Send(t.Context(), tool, f, Sending{Key: "k1", Effect: "eff_1", Attempt: 1, Params: params, Config: cfg, Open: opensNote})
	if o.Status != Confirmed {
		t.Fatalf("outcome: %+v", o)
	}
	const escaped = "DE89%203704%2F0044"
	if want := `"text":"note: ` + secretNote + `","whole":"` + secretNote + `"`; !strings.Contains(got, want) || !strings.Contains(got, " "+secretNote+`"`) {
		t.Errorf("the target got %s", got)
	}
	if path != "/refunds/"+escaped+"?n="+escaped || header != secretNote {
		t.Errorf("the target got %s and header %q", path, header)
	}
	if kept := string(o.Output) + string(o.Receipt.Body) + o.Message; strings.Contains(kept, secretNote) {
		t.Errorf("the answer keeps the value: %s", kept)
	}
}

func TestSend_WithoutTheValueNothingIsSent(t *testing.T) {
	tool, w := compile(t, refundYAML), world(t)
	asked := 0
	cfg := server(t, func(http.ResponseWriter, *http.Request) { asked++ })
	params := sealedNote()
	f, err := tool.Freeze(params, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]Opener{"nobody opens": nil, "gone": func(context.Context, sealed.Commitment) (any, error) { return nil, errors.New("gone") }} {
		o := w.Send(t.Context(), tool, f, Sending{Key: "k1", Effect: "eff_1", Attempt: 1, Params: params, Config: cfg, Open: open})
		if o.Status != NotDone || o.Code != CodeSensitive || asked != 0 {
			t.Errorf("%s: %+v, the target was asked %d times", name, o, asked)
		}
	}
}

func TestFreeze_SealedValuesWhereOthersCouldReadThem_AreRefused(t *testing.T) {
	tool := compile(t, execYAML)
	_, err := tool.Freeze([]byte(`{"service":`+noteLeaf+`}`), Config{})
	if err == nil || !strings.Contains(err.Error(), "sensitive value") {
		t.Errorf("an argument took a sealed value: %v", err)
	}
}

func TestDescribe_HidesSealedValues(t *testing.T) {
	tool := compile(t, edited(t, refundYAML, `summary: "`, `summary: "${params.note} `))
	d, err := tool.Describe(sealedNote(), Config{})
	if err != nil || !strings.Contains(d.Summary, sealed.Hidden) || strings.Contains(d.Summary, sealed.Mark) {
		t.Errorf("summary %q, %v", d.Summary, err)
	}
}

func TestHideOutput_MasksTheReceiptOfWhatIsSensitiveInTheOutput(t *testing.T) {
	src := edited(t, refundYAML, "\neditable:", "\nsensitive_output: [/id]\neditable:")
	tool, w := compile(t, src), world(t)
	cfg := answering(t, 201, `{"id":"re_very_secret","state":"done","link":"/r/re_very_secret"}`)
	p := prepared(t, tool, refundParams)
	f, err := tool.Freeze(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	o := w.Send(t.Context(), tool, f, Sending{Key: "k1", Effect: "eff_1", Attempt: 1, Params: p, Config: cfg})
	if o.Status != Confirmed || !strings.Contains(string(o.Output), "re_very_secret") {
		t.Fatalf("outcome: %+v", o)
	}
	if kept := string(o.Receipt.Body) + o.Receipt.ExternalRef + o.ExternalRef + o.Message; strings.Contains(kept, "re_very_secret") {
		t.Errorf("the receipt keeps the value: %s", kept)
	}
}

func TestHideOutput_MasksEveryItemOfAList(t *testing.T) {
	src := edited(t, refundYAML, "  required: [id]", "  properties: {lines: {items: {properties: {iban: {type: string}}}}}")
	tool, w := compile(t, edited(t, src, "\neditable:", "\nsensitive_output: [/lines/-/iban]\neditable:")), world(t)
	o := send(t, w, tool, answering(t, 201, `{"id":"re_1","lines":[{"iban":"DE89 0001"},{"iban":"DE89 0002"}]}`), refundParams)
	if o.Status != Confirmed || o.Class != "" {
		t.Fatalf("outcome: %+v", o)
	}
	if strings.Contains(string(o.Receipt.Body), "DE89") {
		t.Errorf("the receipt keeps the values: %s", o.Receipt.Body)
	}
}

// What does not fit is told without what is sensitive in it, of parameters as
// of outputs.
func TestSensitive_FaultsDoNotRepeatTheValue(t *testing.T) {
	long := strings.Repeat("hunter2 ", 20)
	src := edited(t, refundYAML, `note: {type: string, default: ""}`, `note: {type: string, default: "", pattern: "^[a-z]*$"}`)
	src = edited(t, src, "  required: [id]", "  properties: {pin: {type: string, maxLength: 4, pattern: \"^[0-9]*$\"}}")
	tool := compile(t, edited(t, src, "\neditable:", "\nsensitive_output: [/pin]\neditable:"))
	_, err := tool.PrepareParams([]byte(`{"order_id":"7","amount":5,"note":"` + long + `"}`))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the fault of a parameter: %v", err)
	}
	if _, err = tool.PrepareParams([]byte(`{"order_id":"7","amount":-987}`), "/amount"); err == nil || strings.Contains(err.Error(), "987") {
		t.Errorf("the fault of a parameter that is sensitive elsewhere: %v", err)
	}
	o := send(t, world(t), tool, answering(t, 201, `{"id":"re_1","pin":"`+long+`"}`), refundParams)
	if o.Code != CodeOutput || strings.Contains(o.Message, "hunter2") {
		t.Errorf("the fault of an output: %+v", o)
	}
}

func TestReveal_AnythingFitsTheQueryOfAURL(t *testing.T) {
	tool, w := compile(t, edited(t, refundYAML, `&o=${params.order_id}"`, `&o=${params.note}"`)), world(t)
	var query string
	cfg := server(t, func(rw http.ResponseWriter, r *http.Request) {
		query = r.URL.Query().Get("o")
		rw.WriteHeader(201)
		_, _ = rw.Write([]byte(`{"id":"re_1"}`))
	})
	f, err := tool.Freeze(sealedNote(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	o := w.Send(t.Context(), tool, f, Sending{Key: "k1", Effect: "eff_1", Attempt: 1, Params: sealedNote(), Config: cfg,
		Open: func(context.Context, sealed.Commitment) (any, error) { return "../a b&c", nil }})
	if o.Status != Confirmed || query != "../a b&c" {
		t.Errorf("outcome %+v; the target got %q", o, query)
	}
}

func TestConfirm_AnOutputCannotForgeASealedValue(t *testing.T) {
	tool, w := compile(t, refundYAML), world(t)
	cfg := answering(t, 201, `{"id":`+noteLeaf+`}`)
	o := send(t, w, tool, cfg, refundParams)
	if o.Status != Confirmed || o.Class != ClassIncompatible || strings.Contains(string(o.Output), sealed.Mark) {
		t.Errorf("outcome: %+v", o)
	}
}

func TestReceipt_NoDigestOverWhatIsMasked(t *testing.T) {
	tool, w := compile(t, refundYAML), world(t)
	cfg := answering(t, 201, `{"id":"re_1","note":"`+secretNote+`"}`)
	f, err := tool.Freeze(sealedNote(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	o := w.Send(t.Context(), tool, f, Sending{Key: "k1", Effect: "eff_1", Attempt: 1, Params: sealedNote(), Config: cfg, Open: opensNote})
	if o.Status != Confirmed || o.Receipt.BodyDigest != "" {
		t.Errorf("the receipt has the digest %q of an answer that repeats the value", o.Receipt.BodyDigest)
	}
	if plain := send(t, w, tool, answering(t, 201, `{"id":"re_1"}`), refundParams); plain.Receipt.BodyDigest == "" {
		t.Error("an ordinary answer has no digest")
	}
}

// An answer that proves nothing, or whose output cannot be made, keeps no
// sensitive output either: where it stands is not known then.
func TestHideOutput_WithoutAnOutput_KeepsNoBody(t *testing.T) {
	src := edited(t, refundYAML, "\neditable:", "\nsensitive_output: [/pin]\nreturns: {id: \"${body.id}\", state: \"${body.state}\", pin: \"${body.data.pin}\"}\neditable:")
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"refused by its status":   {422, `{"error":"pin 8264 of re_1 is used","data":{"pin":"8264"}}`},
		"proving nothing":         {500, `{"data":{"pin":"8264"}}`},
		"not in the form it said": {201, `{"id":"re_1","data":{"pin":"8264"}}`},
		"no JSON":                 {500, `the pin 8264 is used`},
	} {
		t.Run(name, func(t *testing.T) {
			o := send(t, world(t), compile(t, src), answering(t, c.status, c.body), refundParams)
			if kept := string(o.Receipt.Body) + o.Message; strings.Contains(kept, "8264") {
				t.Errorf("the receipt of %s keeps the value: %s", o.Status, kept)
			}
			if !o.Receipt.Incomplete {
				t.Error("the receipt does not say that it is not all there")
			}
		})
	}
}

// What is short is hidden where it stands as a word, not inside of others.
func TestSend_ShortSealedValueEchoedInAText_IsHidden(t *testing.T) {
	src := edited(t, refundYAML, `body: {order: "${params.order_id}", amount: "${params.amount}", note: "${params.note}", pass: "p-${secret.BODY}"}`, `body: {cvv: "${params.note}"}`)
	tool, w := compile(t, src), world(t)
	params := sealedNote()
	for body, kept := range map[string]string{
		`{"id":"re_1","state":"done","said":"CVV 123 is not that of 4123 5"}`: `CVV *** is not that of 4123 5`,
		`the code 123, of card 41235`:                                         `the code ***, of card 41235`,
	} {
		cfg := answering(t, 201, body)
		f, err := tool.Freeze(params, cfg)
		if err != nil {
			t.Fatal(err)
		}
		o := w.Send(t.Context(), tool, f, Sending{Key: "k1", Effect: "eff_1", Attempt: 1, Params: params, Config: cfg,
			Open: func(context.Context, sealed.Commitment) (any, error) { return "123", nil }})
		if got := string(o.Receipt.Body); !strings.Contains(got, kept) {
			t.Errorf("the receipt keeps %s, want %s", got, kept)
		}
	}
}

// A target's answer cannot name a sealed value that the request did not have.
func TestSend_OutputWithAForgedCommitment_IsNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		state string
		fits  bool
	}{
		"a leaf":               {`{"$commit":"` + string(noteSeal) + `"}`, false},
		"inside a text":        {`"see {\"$commit\":\"` + string(noteSeal) + `\"}"`, false},
		"one of the request's": {`"done"`, true},
	} {
		src := edited(t, refundYAML, "\neditable:", "\nreturns: {id: \"${body.id}\", state: \"${body.state}\", note: \"${params.note}\"}\neditable:")
		tool, w := compile(t, src), world(t)
		cfg, params := answering(t, 201, `{"id":"re_1","state":`+c.state+`}`), prepared(t, tool, refundParams)
		if c.fits {
			params = sealedNote()
		}
		f, err := tool.Freeze(params, cfg)
		if err != nil {
			t.Fatal(err)
		}
		o := w.Send(t.Context(), tool, f, Sending{Key: "k1", Effect: "eff_1", Attempt: 1, Params: params, Config: cfg, Open: opensNote})
		if o.Status != Confirmed || (o.Code == "") != c.fits || sealed.In(o.Output) != c.fits {
			t.Errorf("%s: %+v, output %s", name, o, o.Output)
		}
	}
}
