package tools

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/internal/expr"
	"countersign/internal/problem"
	"countersign/internal/schema"
	"countersign/internal/strictyaml"
)

// compiledType names the compiled form of a definition.
const compiledType = "countersign.tool/1"

// code is a definition ready to be evaluated.
type code struct {
	params, output          *schema.Schema
	summary, target, impact *expr.Text
	returns                 *expr.Value
	http                    *httpCode
	exec                    *execCode
	file                    *fileCode
	smtp                    *smtpCode
	reconcile               *reconcileCode
	precondition, preview   *readingCode
	compensate              *expr.Value
}

// judgeCode are the compiled conditions of a transport.
type judgeCode struct {
	ok, notDone, refused *expr.Condition
	class                []classCode
}

type classCode struct {
	class string
	when  *expr.Condition
}

type reconcileCode struct {
	http             *httpCode
	exec             *execCode
	happened, didNot *expr.Condition
	returns          *expr.Value
}

type readingCode struct {
	http  *httpCode
	check *expr.Condition
	pin   *expr.Expr
	shown *schema.Schema // of a preview: nil where it says nothing
}

// fault reports something wrong at a JSON Pointer into the definition.
type fault func(pointer string, offset int, format string, args ...any)

// The names each kind of answer gives to conditions.
var (
	inNames   = []string{"params", "config"}
	httpNames = []string{"status", "headers", "body", "result", "params", "config"}
	execNames = []string{"exit", "stdout", "stderr", "body", "result", "params", "config"}
	fileNames = []string{"body", "result", "params", "config"}
)

// builder compiles a spec, reporting every fault, and notes what it names.
type builder struct {
	s       spec
	fault   fault
	fresh   bool // read from a file; a stored form was checked when it was stored
	config  map[string]bool
	secrets map[string]bool
}

var (
	toolName = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`)
	effects  = []string{"read", "write"}
)

// Risks are the risks a tool may have, the least first.
var Risks = []string{"low", "medium", "high", "critical"}

const (
	toolNameMax = 100
	versionMax  = 1_000_000
)

func build(s spec, f fault, fresh bool) *Tool {
	b := &builder{s: s, fault: f, fresh: fresh, config: map[string]bool{}, secrets: map[string]bool{}}
	b.head()
	t := &Tool{
		Name: s.Tool, Version: s.Version, SemanticVersion: s.SemanticVersion, Title: s.Title,
		Write: s.Effect == "write", Risk: s.Risk, Editable: s.Editable, Sensitive: s.Sensitive, SensitiveOutput: s.SensitiveOutput,
		Reversible: s.Reversible, spec: s,
	}
	t.Transport, t.Timeout = b.transport()
	t.code = b.body(t.Transport)
	t.ConfigNames, t.SecretNames = slices.Sorted(maps.Keys(b.config)), slices.Sorted(maps.Keys(b.secrets))
	return t
}

// head checks what a definition says about itself.
func (b *builder) head() {
	s := b.s
	if s.Format != 1 {
		b.fault("/format", 0, "this console reads format 1, not %d", s.Format)
	}
	if s.Tool != "" && (!toolName.MatchString(s.Tool) || len(s.Tool) > toolNameMax) {
		b.fault("/tool", 0, "a tool's name is lower-case words joined by dots, such as shop.refund, at most %d characters", toolNameMax)
	}
	for pointer, n := range map[string]int{"/version": s.Version, "/semantic_version": s.SemanticVersion} {
		if n < 0 || n > versionMax || n == 0 && (pointer == "/version" || s.Effect == "write") {
			b.fault(pointer, 0, "a version is a whole number from 1 to %d", versionMax)
		}
	}
	b.oneOf("/effect", s.Effect, effects)
	b.oneOf("/risk", s.Risk, Risks)
	if s.Effect == "read" {
		b.readOnly()
	}
}

func (b *builder) oneOf(pointer, got string, known []string) {
	if got == "" || slices.Contains(known, got) {
		return
	}
	hint := ""
	if near := strictyaml.Nearest(got, known); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	b.fault(pointer, 0, "%q is none of %s%s", got, strings.Join(known, ", "), hint)
}

// readOnly refuses what makes sense only for a tool that changes the world.
func (b *builder) readOnly() {
	s := b.s
	for key, there := range map[string]bool{
		"semantic_version": s.SemanticVersion != 0, "idempotency": s.Idempotency != nil, "reconcile": s.Reconcile != nil,
		"precondition": s.Precondition != nil, "preview": s.Preview != nil, "compensate": s.Compensate != nil,
		"editable": len(s.Editable) > 0, "reversible": s.Reversible != nil,
	} {
		if there {
			b.fault("/"+key, 0, "%s is for tools with effect: write; this one only reads", key)
		}
	}
}

// transport finds the one transport and its time limit.
func (b *builder) transport() (string, time.Duration) {
	var found []string
	var timeout duration
	if b.s.HTTP != nil {
		found, timeout = append(found, HTTP), b.s.HTTP.Timeout
	}
	if b.s.Exec != nil {
		found, timeout = append(found, Exec), b.s.Exec.Timeout
	}
	if b.s.File != nil {
		found, timeout = append(found, File), b.s.File.Timeout
	}
	if b.s.SMTP != nil {
		found, timeout = append(found, SMTP), b.s.SMTP.Timeout
	}
	if len(found) != 1 {
		where := ""
		if len(found) > 1 {
			where = "/" + found[1]
		}
		b.fault(where, 0, "a tool has exactly one of http, exec, file and smtp; this one has %d", len(found))
		return "", 0
	}
	return found[0], timeout.Duration()
}

func (b *builder) body(transport string) code {
	s := b.s
	c := code{
		summary: b.text("/summary", s.Summary, inNames...),
		target:  b.text("/target", s.Target, inNames...),
		impact:  b.text("/impact", s.Impact, inNames...),
	}
	c.params = b.schema("/params", s.Params, schema.Options{Object: true})
	c.output = b.schema("/output", s.Output, schema.Options{})
	b.pointers("params", c.params, map[string][]string{"editable": s.Editable, "sensitive": s.Sensitive})
	b.pointers("output", c.output, map[string][]string{"sensitive_output": s.SensitiveOutput})
	c.params, c.output = c.params.Hiding(s.Sensitive...), c.output.Hiding(s.SensitiveOutput...)
	answer := fileNames
	if s.HTTP != nil {
		c.http, answer = b.http("/http", s.HTTP, b.write()), httpNames
	}
	if s.Exec != nil {
		c.exec, answer = b.exec("/exec", s.Exec, b.write()), execNames
	}
	if s.File != nil {
		c.file = b.file("/file", s.File)
	}
	if s.SMTP != nil {
		c.smtp = b.smtp("/smtp", s.SMTP)
	}
	c.returns = b.value("/returns", s.Returns, answer...)
	b.idempotency(transport)
	c.reconcile = b.reconcile()
	c.precondition, c.preview = b.reading("/precondition", s.Precondition), b.reading("/preview", s.Preview)
	if s.Compensate != nil {
		if !toolName.MatchString(s.Compensate.Tool) {
			b.fault("/compensate/tool", 0, "%q is not a tool's name", s.Compensate.Tool)
		}
		c.compensate = b.value("/compensate/with", s.Compensate.With, "params", "config", "result", "output")
	}
	return c
}

func (b *builder) write() bool { return b.s.Effect == "write" }

func (b *builder) schema(pointer string, v any, o schema.Options) *schema.Schema {
	if v == nil {
		return nil
	}
	s, err := schema.Compile(v, o)
	if err == nil {
		return s
	}
	p := problem.From(err)
	if len(p.Fields) == 0 {
		b.fault(pointer, 0, "%s", p.Message)
	}
	for _, f := range p.Fields {
		b.fault(pointer+f.Pointer, 0, "%s", f.Message)
	}
	return nil
}

// pointers checks that what may be edited or is sensitive exists.
func (b *builder) pointers(what string, in *schema.Schema, lists map[string][]string) {
	for key, list := range lists {
		for i, ptr := range list {
			at := "/" + key + "/" + strconv.Itoa(i)
			if slices.Contains(list[:i], ptr) {
				b.fault(at, 0, "%q is named twice", ptr)
			}
			if in == nil {
				continue
			}
			if ptr == "" || !in.Admits(ptr) {
				b.fault(at, 0, "%q names nothing in %s; write a JSON Pointer such as /amount%s", ptr, what, nearestField(in, ptr))
			}
		}
	}
}

func nearestField(in *schema.Schema, ptr string) string {
	var known []string
	for _, f := range in.Fields("") {
		known = append(known, f.Pointer)
	}
	if near := strictyaml.Nearest(ptr, known); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	return ""
}

func (b *builder) idempotency(transport string) {
	i := b.s.Idempotency
	if i == nil {
		return
	}
	switch {
	case transport == File:
		b.fault("/idempotency", 0, "a file tool needs no idempotency: it compares what the file holds")
	case transport == Exec && i.Header != "":
		b.fault("/idempotency/header", 0, "a program gets the key in COUNTERSIGN_IDEMPOTENCY_KEY, not in a header")
	case transport == HTTP:
		b.headerName("/idempotency/header", i.Header)
		for name := range b.s.HTTP.Headers {
			if http.CanonicalHeaderKey(name) == http.CanonicalHeaderKey(i.Header) {
				b.fault("/http/headers/"+escape(name), 0, "the header %s carries the idempotency key; it cannot be set here", name)
			}
		}
	}
	b.limit("/idempotency/ttl", i.TTL, ttlMax)
}

func (b *builder) reconcile() *reconcileCode {
	r := b.s.Reconcile
	if r == nil {
		return nil
	}
	if b.s.File != nil {
		b.fault("/reconcile", 0, "a file tool needs no reconcile: it compares what the file holds")
		return nil
	}
	b.limit("/reconcile/settle", r.Settle, settleMax)
	c, names := &reconcileCode{}, httpNames
	switch {
	case r.HTTP != nil && r.Exec != nil || r.HTTP == nil && r.Exec == nil:
		b.fault("/reconcile", 0, "reconcile asks by exactly one of http and exec")
		return nil
	case r.HTTP != nil:
		c.http = b.http("/reconcile/http", r.HTTP, false, "idempotency_key")
	default:
		c.exec, names = b.exec("/reconcile/exec", r.Exec, false, "idempotency_key"), execNames
	}
	names = slices.Concat(names, []string{"idempotency_key"})
	c.happened = b.condition("/reconcile/happened", r.Happened, names...)
	c.didNot = b.condition("/reconcile/did_not", r.DidNot, names...)
	c.returns = b.value("/reconcile/returns", r.Returns, names...)
	return c
}

func (b *builder) reading(pointer string, r *readingSpec) *readingCode {
	if r == nil || r.HTTP == nil {
		return nil
	}
	if b.s.File != nil {
		b.fault(pointer, 0, "a file tool has its own %s: what the file holds now", pointer[1:])
		return nil
	}
	return &readingCode{
		http:  b.http(pointer+"/http", r.HTTP, false),
		check: b.condition(pointer+"/check", r.Check, httpNames...),
		pin:   b.expr(pointer+"/pin", r.Pin, httpNames...),
		shown: b.schema(pointer+"/output", r.Output, schema.Options{}),
	}
}

func (b *builder) limit(pointer string, d duration, most time.Duration) {
	if d <= 0 || d.Duration() > most {
		b.fault(pointer, 0, "must be longer than nothing and at most %s", most)
	}
	if d.Duration()%time.Millisecond != 0 {
		b.fault(pointer, 0, "must be whole milliseconds")
	}
}
