package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/problem"
)

var shopConfig = Config{"shop": "https://shop.example/api/"}

func prepared(t *testing.T, tool *Tool, params string) json.RawMessage {
	t.Helper()
	p, err := tool.PrepareParams(json.RawMessage(params))
	if err != nil {
		t.Fatalf("params %s: %v", params, err)
	}
	return p
}

func frozen(t *testing.T, tool *Tool, params string, cfg Config) Frozen {
	t.Helper()
	f, err := tool.Freeze(prepared(t, tool, params), cfg)
	if err != nil {
		t.Fatalf("freeze %s: %v", params, err)
	}
	return f
}

func TestPrepareParams_AppliesDefaultsAndSaysWhereItDoesNotFit(t *testing.T) {
	tool := compile(t, refundYAML)
	if got := string(prepared(t, tool, `{"order_id":"7","amount":1e2}`)); got != `{"amount":100,"note":"","order_id":"7"}` {
		t.Error(got)
	}
	_, err := tool.PrepareParams(json.RawMessage(`{"order_id":7,"amount":0,"extra":1}`))
	p := problem.From(err)
	if p.Kind != problem.Invalid || len(p.Fields) < 3 {
		t.Errorf("%v %+v", err, p.Fields)
	}
	for _, bad := range []string{`{"order_id":"7","amount":1,"amount":2}`, `{"order_id":"7","amount":9007199254740993}`, `{`, ``} {
		if _, err := tool.PrepareParams(json.RawMessage(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestDescribe_IsComputedFromTheParameters(t *testing.T) {
	tool := compile(t, refundYAML)
	got, err := tool.Describe(prepared(t, tool, `{"order_id":"${secret.X}","amount":100}`), shopConfig)
	if err != nil {
		t.Fatal(err)
	}
	want := Description{"Refund 100 on order ${secret.X}", "order ${secret.X}", "Money leaves the account."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFreeze_ResolvesEverythingButSecrets(t *testing.T) {
	tool := compile(t, refundYAML)
	got := frozen(t, tool, `{"order_id":"a/b ?&=#%é","amount":5,"note":"${secret.SHOP_TOKEN} {\"$secret\":\"BODY\"}"}`, shopConfig)
	want := `{"body":{"amount":5,"note":"${secret.SHOP_TOKEN} {\"$secret\":\"BODY\"}","order":"a/b ?&=#%é","pass":"***"},` +
		`"body_secrets":{"/pass":["p-",{"$secret":"BODY"}]},` +
		`"headers":{"Authorization":["Bearer ",{"$secret":"SHOP_TOKEN"}],"X-Order":"a/b ?&=#%é"},` +
		`"key_header":"X-Key","method":"POST","timeout_ms":2000,"transport":"http","type":"countersign.request/1",` +
		`"url":["https://shop.example/api/orders/a%2Fb%20%3F%26%3D%23%25%C3%A9/refunds?token=",{"$secret":"QUERY"},"&o=a%2Fb%20%3F%26%3D%23%25%C3%A9"]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	r, err := ReadFrozen(got)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.freeze()
	if err != nil || string(again) != want {
		t.Errorf("read back: %s %v", again, err)
	}
}

func TestFreeze_RefusesWhatWouldMeanSomethingElse(t *testing.T) {
	tool := compile(t, refundYAML)
	for id, want := range map[string]string{
		"": "empty", "..": "path part", "../x": "path part", `x\..\y`: "path part", "a\r\nX-Evil: 1": "control", "a\u0085b": "control", " a": "space",
	} {
		params, err := json.Marshal(map[string]any{"order_id": id, "amount": 1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = tool.Freeze(prepared(t, tool, string(params)), shopConfig)
		if p := problem.From(err); err == nil || p.Kind != problem.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", id, err, want)
		}
	}
}

func TestFreeze_ConfigIsOnlyAPlainBeginning(t *testing.T) {
	tool := compile(t, refundYAML)
	params := prepared(t, tool, `{"order_id":"7","amount":1}`)
	for _, bad := range []string{"", "shop.example", "ftp://shop.example", "file:///etc/passwd", "gopher://x", "https://u:p@shop.example", "https://shop.example?x=1", "https://shop.example#f",
		"https://shop.example/a/../b", "https://аpple.example", "https://", "https://shop.example/a b", "//shop.example", "https://shop.example\\@evil.example"} {
		if _, err := tool.Freeze(params, Config{"shop": bad}); err == nil {
			t.Errorf("config.shop = %q was accepted", bad)
		}
	}
	for _, fine := range []string{"https://shop.example", "http://127.0.0.1:8080/", "https://[2001:db8::1]:8443/a/b"} {
		if _, err := tool.Freeze(params, Config{"shop": fine}); err != nil {
			t.Errorf("config.shop = %q: %v", fine, err)
		}
	}
}

const execYAML = `format: 1
tool: ops.restart
version: 1
effect: write
risk: high
params:
  type: object
  additionalProperties: false
  properties:
    service: {type: string}
    count: {type: integer, default: 1}
summary: "Restart ${params.service}"
target: "service ${params.service}"
exec:
  argv: [/bin/sh, -c, "cat; echo $1", sh, "--service=${params.service}", "${params.count}"]
  env: {TOKEN: "${secret.TOKEN}", PARAM_SERVICE: "${params.service}"}
  timeout: 5s
`

func TestFreeze_ArgumentsCannotBecomeOptions(t *testing.T) {
	dash := edited(t, execYAML, `"${params.count}"]`, `"${params.service}"]`)
	for src, ok := range map[string]bool{
		execYAML: true, dash: false,
		edited(t, dash, `"${params.service}"]`, `--, "${params.service}"]`):        true,
		edited(t, dash, "exec:", "exec:\n  allow_dash: true"):                      true,
		edited(t, dash, `"${params.service}"]`, `"-s${params.service}"]`):          true,
		edited(t, dash, `"${params.service}"]`, `"${'--'}", "${params.service}"]`): false,
	} {
		tool := compile(t, src)
		_, err := tool.Freeze(prepared(t, tool, `{"service":"-rf"}`), nil)
		if (err == nil) != ok {
			t.Errorf("accepted %v, want %v (%v):\n%s", err == nil, ok, err, src)
		}
	}
	tool := compile(t, execYAML)
	if _, err := tool.Freeze(prepared(t, tool, `{"service":"a\u0000b"}`), nil); err == nil {
		t.Error("a null character was accepted")
	}
}

func TestCompile_ExecRefusesWhatWouldRunOtherCode(t *testing.T) {
	for _, name := range []string{"PATH", "path", "LD_PRELOAD", "ld_preload", "BASH_ENV", "IFS", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "COUNTERSIGN_IDEMPOTENCY_KEY", "A B", "1A", "A-B"} {
		if _, err := Compile("t.yaml", []byte(edited(t, execYAML, "PARAM_SERVICE:", "'"+name+"':"))); err == nil {
			t.Errorf("the variable %q was accepted", name)
		}
	}
	for old, new := range map[string]string{
		"cat; echo $1":      "cat; echo ${params.service}",
		"[/bin/sh, -c":      `["${params.service}", -c`,
		"[/bin/sh, -c,":     "[bin/sh, -c,",
		"timeout: 5s":       "timeout: 5s\n  dir: tmp",
		"TOKEN: \"${secret": "TOKEN: \"${secrets",
		"sh, \"--service=":  "sh, \"${secret.X}--service=",
	} {
		if _, err := Compile("t.yaml", []byte(edited(t, execYAML, old, new))); err == nil {
			t.Errorf("%s was accepted", new)
		}
	}
}

// The text of a parameter is data wherever it lands (H08).
func TestFreeze_AParameterIsNeverEvaluated(t *testing.T) {
	tool := compile(t, execYAML)
	r, err := ReadFrozen(frozen(t, tool, `{"service":"$(id) ${secret.TOKEN} {{ x }}"}`, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/bin/sh", "-c", "cat; echo $1", "sh", "--service=$(id) ${secret.TOKEN} {{ x }}", "1"}
	if diff := cmp.Diff(want, r.Argv); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Parts{{Text: "$(id) ${secret.TOKEN} {{ x }}"}}, r.Env["PARAM_SERVICE"]); diff != "" {
		t.Error(diff)
	}
}

const fileYAML = `format: 1
tool: kb.publish
version: 1
effect: write
risk: medium
params:
  type: object
  additionalProperties: false
  required: [page, body]
  properties: {page: {type: string}, body: {type: string}}
output: {type: object, required: [path, digest, size]}
summary: "Publish ${params.page}"
target: "page ${params.page}"
file: {root: "${config.kb}", path: "reports/${params.page}.md", content: "${params.body}"}
`

func TestFreeze_FileNamesStayBelowTheRoot(t *testing.T) {
	tool := compile(t, fileYAML)
	for page, ok := range map[string]bool{"w1": true, "foo..bar": true, ".foo": true, "a/.bar": true, "../x": false, "a/../../x": false, `..\x`: false, "": true, "a//b": false, "a\x00": false} {
		params, err := json.Marshal(map[string]string{"page": page, "body": "x"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tool.Freeze(prepared(t, tool, string(params)), Config{"kb": "/srv/kb"}); (err == nil) != ok {
			t.Errorf("page %q: %v", page, err)
		}
	}
	if _, err := tool.Freeze(prepared(t, tool, `{"page":"a","body":"b"}`), Config{"kb": "relative"}); err == nil {
		t.Error("a relative root was accepted")
	}
	if _, err := tool.Freeze(prepared(t, tool, `{"page":"a","body":"b"}`), nil); err == nil {
		t.Error("a missing root was accepted")
	}
}

func TestReadFrozen_RefusesWhatItDidNotFreeze(t *testing.T) {
	for _, bad := range []string{``, `{}`, `{"type":"countersign.request/2"}`, `{"type":"countersign.request/1","extra":1}`, `{"type":"countersign.request/1","url":[{"$secret":""}]}`, `{"type":"countersign.request/1","url":[5]}`} {
		if _, err := ReadFrozen(Frozen(bad)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
