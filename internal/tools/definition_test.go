package tools

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/strictyaml"
)

var update = flag.Bool("update", false, "write golden files")

const refundYAML = `format: 1
tool: shop.refund
version: 1
title: Refund an order
effect: write
risk: high
reversible: false
params:
  type: object
  additionalProperties: false
  required: [order_id, amount]
  properties:
    order_id: {type: string}
    amount: {type: integer, minimum: 1}
    note: {type: string, default: ""}
output:
  type: object
  required: [id]
summary: "Refund ${params.amount} on order ${params.order_id}"
target: "order ${params.order_id}"
impact: "Money leaves the account."
editable: [/amount, /note]
sensitive: [/note]
http:
  method: POST
  url: "${config.shop}/orders/${params.order_id}/refunds?token=${secret.QUERY}&o=${params.order_id}"
  headers: {Authorization: "Bearer ${secret.SHOP_TOKEN}", X-Order: "${params.order_id}"}
  body: {order: "${params.order_id}", amount: "${params.amount}", note: "${params.note}", pass: "p-${secret.BODY}"}
  timeout: 2s
  ok: "status == 201"
  not_done: "status == 429 || status == 503"
  refused: "status in [400, 403, 409]"
  class: {invalid: "status == 400"}
idempotency: {header: X-Key, ttl: 24h}
reconcile:
  http: {method: GET, url: "${config.shop}/refunds?key=${idempotency_key}", headers: {Authorization: "Bearer ${secret.SHOP_TOKEN}"}}
  happened: "size(body.items) == 1"
  did_not: "size(body.items) == 0"
  returns: "${body.items[0]}"
  settle: 1s
precondition:
  http: {method: GET, url: "${config.shop}/orders/${params.order_id}"}
  check: "body.state == 'paid' && params.amount <= body.refundable"
  pin: "body.version"
preview: {http: {method: POST, url: "${config.shop}/refunds/preview", body: "${params}"}}
compensate: {tool: shop.cancel_refund, with: {refund_id: "${result.body.id}"}}
`

func compile(t *testing.T, src string) *Tool {
	t.Helper()
	tool, err := Compile("t.yaml", []byte(src))
	if err != nil {
		t.Fatalf("compile:\n%v\n%s", err, src)
	}
	return tool
}

// edited replaces one place of a definition, which must be there.
func edited(t testing.TB, src, old, new string) string {
	t.Helper()
	if strings.Count(src, old) != 1 {
		t.Fatalf("%q is there %d times", old, strings.Count(src, old))
	}
	return strings.Replace(src, old, new, 1)
}

func TestCompile_KnowsEverythingADefinitionSays(t *testing.T) {
	tool := compile(t, refundYAML)
	ttl, resend := tool.CanResend()
	comp, ok := tool.Compensation()
	got := []any{tool.Name, tool.Version, tool.SemanticVersion, tool.Write, tool.Risk, tool.Transport, tool.Timeout.String(), tool.Editable, tool.Sensitive,
		*tool.Reversible, tool.ConfigNames, tool.SecretNames, ttl.String(), resend, tool.CanQuery(), tool.HasPreview(), tool.HasPrecondition(), tool.Honesty(), comp.Tool, ok}
	want := []any{"shop.refund", 1, 1, true, "high", "http", "2s", []string{"/amount", "/note"}, []string{"/note"},
		false, []string{"shop"}, []string{"BODY", "QUERY", "SHOP_TOKEN"}, "24h0m0s", true, true, true, true, HonestyKeyAndQuery, "shop.cancel_refund", true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCompile_TheDigestDependsOnMeaningAlone(t *testing.T) {
	a := compile(t, refundYAML)
	b := compile(t, "# a comment\n"+edited(t, refundYAML, "{type: string}\n    amount", "{\"type\": \"string\"}\n\n    amount"))
	if a.Digest != b.Digest {
		t.Errorf("another way to write it: %s and %s", a.Digest, b.Digest)
	}
	seen := map[string]string{a.Digest: "the original"}
	for old, new := range map[string]string{
		"timeout: 2s": "timeout: 3s", "status == 201": "status == 200", "X-Order:": "X-Other:", "settle: 1s": "settle: 2s", "24h": "25h",
		"version: 1": "version: 2", "risk: high": "risk: low", "p-${": "q-${", "body.version": "body.state", "minimum: 1": "minimum: 2", "false\nparams": "true\nparams",
	} {
		d := compile(t, edited(t, refundYAML, old, new)).Digest
		if seen[d] != "" {
			t.Errorf("%s has the digest of %s", new, seen[d])
		}
		seen[d] = new
	}
}

func TestLoad_GivesTheSameToolBack(t *testing.T) {
	for name, tool := range examples(t) {
		again, err := Load(tool.Compiled)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if again.Digest != tool.Digest || again.Honesty() != tool.Honesty() || again.Timeout != tool.Timeout {
			t.Errorf("%s: %s became %s", name, tool.Digest, again.Digest)
		}
	}
}

func TestLoad_RefusesWhatItDidNotWrite(t *testing.T) {
	good := compile(t, refundYAML).Compiled
	for name, bad := range map[string][]byte{
		"empty": nil, "another type": bytes.Replace(good, []byte("countersign.tool/1"), []byte("countersign.tool/2"), 1),
		"not canonical": append([]byte(" "), good...), "unknown key": bytes.Replace(good, []byte(`"effect"`), []byte(`"affect"`), 1),
		"not valid": bytes.Replace(good, []byte(`"status == 201"`), []byte(`"stasus == 201"`), 1),
	} {
		if _, err := Load(bad); err == nil {
			t.Errorf("%s was loaded", name)
		}
	}
}

// examples compiles every sample definition of the repository.
func examples(t *testing.T) map[string]*Tool {
	t.Helper()
	files, err := filepath.Glob("../../examples/tools/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	out := map[string]*Tool{"test.refund": compile(t, refundYAML)}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tool, err := Compile(filepath.Base(f), src)
		if err != nil {
			t.Errorf("%s:\n%v", f, err)
			continue
		}
		out[tool.Name] = tool
	}
	return out
}

// The compiled form is stored for ever: changing it changes every digest.
func TestCompile_CompiledFormsAreGolden(t *testing.T) {
	tool := compile(t, refundYAML)
	golden := filepath.Join("testdata", "refund.compiled.json")
	if *update {
		if err := os.WriteFile(golden, tool.Compiled, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(tool.Compiled)); diff != "" {
		t.Errorf("the compiled form changed; with a new format number this would be right:\n%s", diff)
	}
	if _, err := Load(want); err != nil {
		t.Errorf("a stored form no longer loads: %v", err)
	}
}

func TestHonesty_SaysHowNearToExactlyOnceAToolComes(t *testing.T) {
	cut := func(src, from, to string) string {
		i := strings.Index(src, from)
		return src[:i] + src[i+strings.Index(src[i:], to):]
	}
	noKey := cut(refundYAML, "idempotency:", "reconcile:")
	noQuery := cut(refundYAML, "reconcile:", "precondition:")
	neither := cut(noKey, "reconcile:", "precondition:")
	for want, src := range map[string]string{HonestyKeyAndQuery: refundYAML, HonestyQuery: noKey, HonestyKey: noQuery, HonestyPerson: neither} {
		if got := compile(t, src).Honesty(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for name, want := range map[string]string{"kb.publish": HonestyQuery, "docs.collect": HonestyRead, "ops.restart": HonestyPerson, "shop.refund": HonestyKeyAndQuery} {
		if got := examples(t)[name].Honesty(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// faulty lists edits of the refund tool and the fault each must be reported as.
var faulty = []struct{ old, new, want string }{
	{"format: 1", "format: 2", "t.yaml:1:9: this console reads format 1"},
	{"effect: write", "effect: wriet", "did you mean write?"},
	{"risk: high", "risk: hgih", "did you mean high?"},
	{"shop.refund\n", "Shop.Refund\n", "lower-case words"},
	{"version: 1", "version: 0", "from 1 to"},
	{"impact:", "imapct:", "impact"},
	{"[/amount, /note]", "[/amout]", "did you mean /amount?"},
	{"[/amount, /note]", "[/amount, /amount]", "named twice"},
	{"sensitive: [/note]", "sensitive: [note]", "JSON Pointer"},
	{"method: POST\n", "method: post\n", "did you mean POST?"},
	{"${config.shop}/orders/${params.order_id}/", "${params.order_id}/", "cannot stand there"},
	{"${config.shop}/orders/${params.order_id}/", "https://${params.order_id}/", "cannot stand there"},
	{"${config.shop}/orders/${params.order_id}/", "https://x.${params.order_id}/", "cannot"},
	{"${config.shop}/orders/${params.order_id}/", "https://u:p@x.example/", "user name cannot"},
	{"${config.shop}/orders/${params.order_id}/", "ftp://x.example/", "http:// or https://"},
	{"${config.shop}/orders/${params.order_id}/", "https://аpple.example/", "xn--"},
	{"${config.shop}/orders/${params.order_id}/", "${config.shop}.evil.example/", "must begin with / or ?"},
	{"${config.shop}/orders/${params.order_id}/", "${config.shop}/${config.other}/", "config"},
	{"${config.shop}/orders/${params.order_id}/", "${config.shop}/${secret.X}/", "secret cannot be part of a path"},
	{"&o=${params.order_id}", "#${params.order_id}", "cannot hold"},
	{"X-Order:", "Content-Length:", "set by the console"},
	{"X-Order:", "\"X Order\":", "name of a header"},
	{"X-Order:", "authorization:", "twice"},
	{"X-Order: \"${params.order_id}\"", "Content-Type: text/plain", "sent as JSON"},
	{"X-Order:", "x-key:", "idempotency key"},
	{"timeout: 2s", "timeout: 10m", "at most 5m"},
	{"timeout: 2s", "timeout: 2", "t.yaml:"},
	{"status == 201", "stauts == 201", "stauts"},
	{"status == 201", "status ==", "t.yaml:"},
	{"Refund ${params.amount}", "Refund ${params.amuont}", `t.yaml:19:20: params has no "amuont"; did you mean amount?`},
	{"o=${params.order_id}", "o=${params.order}", `params has no "order"; there is amount, note, order_id`},
	{"note: \"${params.note}\"", "note: \"${params.remark}\"", `params has no "remark"`},
	{"class: {invalid:", "class: {invald:", "did you mean invalid?"},
	{"ttl: 24h", "ttl: 1000d", "at most"},
	{"happened: \"size(body.items) == 1\"\n", "happened: \"size(bdy.items) == 1\"\n", "bdy"},
	{"key=${idempotency_key}", "key=${idempotency_kye}", "idempotency_kye"},
	{"summary: \"Refund ${params.amount}", "summary: \"Refund ${secret.X}", "secret"},
	{"summary: \"Refund ${params.amount}", "summary: \"Refund ${status}", "status"},
	{"\"body.version\"", "\"secret.X\"", "secret"},
	{"shop.cancel_refund", "Cancel!", "not a tool's name"},
	{"additionalProperties: false", "additionalProperties: maybe", "t.yaml:"},
	{"compensate:", "file: {root: /x, path: a, content: b}\ncompensate:", "exactly one of"},
	{"preview: {http: {method: POST", "preview: {http: {not_done: \"true\", method: POST", "not_done is for"},
	{"effect: write", "effect: read", "idempotency is for tools with effect: write"},
}

func TestCompile_EveryFaultIsReportedAtItsPlace(t *testing.T) {
	for _, f := range faulty {
		_, err := Compile("t.yaml", []byte(edited(t, refundYAML, f.old, f.new)))
		p, ok := errors.AsType[strictyaml.Problems](err)
		if !ok || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: want %q, got\n%v", f.new, f.want, err)
			continue
		}
		for _, x := range p {
			if x.Pos.Line < 1 {
				t.Errorf("%s: no place: %s", f.new, x.Message)
			}
		}
	}
}

func TestCompile_ReportsAllFaultsAtOnce(t *testing.T) {
	src := refundYAML
	for _, e := range [][2]string{{"risk: high", "risk: hgih"}, {"status == 201", "stauts == 201"}, {"timeout: 2s", "timeout: 10m"}, {"[/amount, /note]", "[/amout]"}} {
		src = edited(t, src, e[0], e[1])
	}
	_, err := Compile("t.yaml", []byte(src))
	if p, ok := errors.AsType[strictyaml.Problems](err); !ok || len(p) != 4 {
		t.Errorf("want 4 faults:\n%v", err)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add([]byte(refundYAML))
	for _, x := range faulty {
		f.Add([]byte(edited(f, refundYAML, x.old, x.new)))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		tool, err := Compile("f.yaml", src)
		if err != nil {
			return
		}
		again, err := Load(tool.Compiled)
		if err != nil || again.Digest != tool.Digest {
			t.Fatalf("does not load: %v", err)
		}
	})
}
