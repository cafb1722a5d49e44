package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"countersign/internal/approvals"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/internal/tools"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// showDefinitions is GET /definitions.
func (b *Browser) showDefinitions(c echo.Context) error {
	page, err := b.frame(c, "Definitions")
	if err != nil {
		return err
	}
	v := pages.DefinitionsView{Page: page, Explain: "/definitions/explain"}
	for _, kind := range []struct{ code, title, empty string }{
		{"workflow", "Workflows", "No workflow is in force."}, {"tool", "Tools", "No tool is in force."}, {"policy", "Policies", "No policy is in force: one approver is asked about everything."}} {
		list, err := b.desk.DefinitionList(c.Request().Context(), who(c), kind.code)
		if err != nil {
			return err
		}
		g := pages.DefinitionGroup{Title: kind.title, Empty: kind.empty}
		for _, d := range list.Items {
			if d.InForce {
				g.Rows = append(g.Rows, pages.DefinitionRow{Name: d.Name, Version: d.Version, URL: definitionURL(d), Title: d.Title, Risk: d.Risk, Effect: effectWord(d.Effect), Digest: d.Digest, Since: b.at(d.Since)})
			}
		}
		v.Groups = append(v.Groups, g)
	}
	return render(c, http.StatusOK, pages.Definitions(v))
}

func definitionURL(d desk.DefinitionView) string {
	return fmt.Sprintf("/definitions/%s/%s/%d", d.Kind, d.Name, d.Version)
}

func effectWord(effect string) string {
	return map[string]string{"read": "reads", "write": "writes"}[effect]
}

// showDefinition is GET /definitions/{kind}/{name}/{version}.
func (b *Browser) showDefinition(c echo.Context) error {
	list, err := b.desk.DefinitionList(c.Request().Context(), who(c), c.Param("kind"))
	if err != nil {
		return err
	}
	version, _ := strconv.Atoi(c.Param("version"))
	var found *desk.DefinitionView
	var versions []parts.Link
	for i, d := range list.Items {
		if d.Name != c.Param("name") || d.Kind != c.Param("kind") {
			continue
		}
		link := parts.Link{Text: strconv.Itoa(d.Version), URL: definitionURL(d)}
		if d.Version == version {
			found, link.URL = &list.Items[i], ""
		}
		versions = append(versions, link)
	}
	if found == nil {
		return problem.New(problem.NotFound, "not_found", "There is no such version of a definition here.")
	}
	page, err := b.frame(c, fmt.Sprintf("%s %d", found.Name, found.Version))
	if err != nil {
		return err
	}
	v := b.definitionView(*found)
	v.Page, v.Versions = page, versions
	if found.Kind == "workflow" {
		plan, err := b.desk.WorkflowPlan(c.Request().Context(), who(c), found.Digest)
		if err != nil {
			return err
		}
		m := planMap(plan)
		v.Map = &m
		if found.InForce && desk.May(who(c), "runs:write") {
			v.Start = withQuery("/runs/new", "workflow", found.Name)
		}
	}
	return render(c, http.StatusOK, pages.Definition(v))
}

func (b *Browser) definitionView(d desk.DefinitionView) pages.DefinitionView {
	v := pages.DefinitionView{Back: parts.Link{Text: "Definitions", URL: "/definitions"}, Kind: d.Kind, Name: d.Name, Version: d.Version, Title: d.Title,
		Facts:  []parts.Fact{{Name: "Digest", Digest: d.Digest}, {Name: "File", Text: d.File, Mono: true}, {Name: "Stored", Time: b.at(d.Since)}},
		Source: parts.JSON{Title: "As it was written", Text: d.Source, Open: true}, Compiled: document("As it is digested", d.Compiled)}
	if d.Risk != "" {
		v.Facts = append(v.Facts, parts.Fact{Name: "Risk", Text: d.Risk}, parts.Fact{Name: "Effect", Text: effectWord(d.Effect)})
	}
	if d.Honesty != "" {
		v.Facts = append(v.Facts, parts.Fact{Name: "A lost answer is settled by", Text: honestyWord(d.Honesty)})
	}
	if d.Kind == "workflow" {
		v.Facts = append(v.Facts, b.drilled(d.Drill))
	}
	v.Rules = policyRules(d)
	return v
}

// drilled says what the last drill of a workflow version found, and whether it
// still says anything.
func (b *Browser) drilled(last *desk.Drill) parts.Fact {
	f := parts.Fact{Name: "Last drill", Text: "never: console drill rehearses it with a crash at every instant"}
	if last == nil {
		return f
	}
	f.Text = fmt.Sprintf("%s, %d crashes, no findings", b.at(last.At).Relative, last.Cases)
	if last.Findings > 0 {
		f.Text = fmt.Sprintf("%s, %d crashes, %d findings", b.at(last.At).Relative, last.Cases, last.Findings)
	}
	if last.Status != engine.Completed {
		f.Text += "; undisturbed it ended " + last.Status
	}
	if last.Old {
		f.Text += ". That is too long ago: hold another"
	}
	return f
}

// honestyWord says how a lost answer of a tool is settled.
func honestyWord(honesty string) string {
	word, ok := map[string]string{
		tools.HonestyKey: "sending the same key again, which the target takes for the same request", tools.HonestyQuery: "asking the target whether it happened",
		tools.HonestyKeyAndQuery: "asking the target, and sending the same key again if it did not happen", tools.HonestyPerson: "a person, with evidence: nobody else can know",
	}[honesty]
	if !ok {
		return honesty
	}
	return word
}

// policyRules are the rules of a policy, from its compiled form.
func policyRules(d desk.DefinitionView) []pages.PolicyRule {
	if d.Kind != "policy" {
		return nil
	}
	var compiled struct {
		Rules []struct {
			Name, When, Effect string
			Approve            struct {
				Groups []struct {
					Name, Role string
					Need       int
				}
			}
		}
	}
	if json.Unmarshal(d.Compiled, &compiled) != nil {
		return nil
	}
	var out []pages.PolicyRule
	for _, r := range compiled.Rules {
		rule := pages.PolicyRule{Name: r.Name, When: r.When, Effect: r.Effect}
		for _, g := range r.Approve.Groups {
			name := g.Name
			if name == "" {
				name = g.Role
			}
			rule.Text = joinWords(rule.Text, fmt.Sprintf("%d of %s", g.Need, name))
		}
		out = append(out, rule)
	}
	return out
}

// showExplain is GET /definitions/explain.
func (b *Browser) showExplain(c echo.Context) error { return b.explainPage(c, http.StatusOK, nil, nil) }

func (b *Browser) explainPage(c echo.Context, code int, answer *pages.ExplainAnswer, fault *problem.Error) error {
	page, err := b.frame(c, "Who would have to approve this?")
	if err != nil {
		return err
	}
	list, err := b.desk.DefinitionList(c.Request().Context(), who(c), "tool")
	if err != nil {
		return err
	}
	chosen := c.FormValue("tool")
	tools := parts.Field{Name: "tool", Label: "Tool", Kind: "choice", Required: true, Error: faultAt(fault, "/tool")}
	for _, d := range list.Items {
		if d.InForce && d.Effect == "write" {
			tools.Options = append(tools.Options, parts.Option{Value: d.Name, Text: d.Name, Selected: d.Name == chosen})
		}
	}
	v := pages.ExplainView{Page: page, Back: parts.Link{Text: "Definitions", URL: "/definitions"}, Action: "/definitions/explain", Answer: answer, Fields: []parts.Field{tools,
		{Name: "params", Label: "Parameters", Hint: `JSON, like {"order_id":"4711","amount":12500,"currency":"EUR"}`, Kind: "json", Rows: 6, Value: c.FormValue("params"), Error: faultAt(fault, "/params")},
		{Name: "workflow", Label: "Workflow", Hint: "if a rule looks at it", Kind: "text", Value: c.FormValue("workflow")},
		{Name: "on_behalf_of", Label: "On behalf of", Hint: "if a rule looks at it", Kind: "text", Value: c.FormValue("on_behalf_of")}}}
	if fault != nil {
		v.Error = notice("bad", fault)
	}
	return render(c, code, pages.Explain(v))
}

// explain is POST /definitions/explain.
func (b *Browser) explain(c echo.Context) error {
	in := desk.Explain{Tool: c.FormValue("tool"), Workflow: c.FormValue("workflow"), OnBehalfOf: c.FormValue("on_behalf_of")}
	if raw := c.FormValue("params"); raw != "" {
		in.Params = json.RawMessage(raw)
	}
	said, err := b.desk.Explain(c.Request().Context(), who(c), in)
	if p := problem.From(err); p != nil {
		if p.Kind != problem.Invalid && p.Kind != problem.Malformed && p.Kind != problem.NotFound {
			return err
		}
		return b.explainPage(c, edge.Status(p), nil, p)
	}
	return b.explainPage(c, http.StatusOK, &pages.ExplainAnswer{Verdict: verdictStatus(said.Effect), Sentence: said.Summary, Policy: explained(said)}, nil)
}

func verdictStatus(effect string) parts.Status {
	return parts.Status{Code: effect, Word: map[string]string{"allow": "allowed without a person", "deny": "denied", "approve": "people must approve"}[effect]}
}

// explained is a verdict as the policy part of a page.
func explained(e desk.Explanation) pages.Policy {
	p := pages.Policy{Rule: e.Rule, NoRule: e.Rule == approvals.RuleNone, Faulty: e.Rule == approvals.RuleError}
	for _, g := range e.Groups {
		group := pages.Group{Name: g.Name, Need: g.Need}
		for _, who := range g.Can {
			p.Can = append(p.Can, who.Name)
		}
		p.Groups = append(p.Groups, group)
	}
	for _, t := range e.Trace {
		if !t.Matched {
			p.Others = append(p.Others, pages.Rule{Name: t.Rule, Why: t.Why})
		}
	}
	return p
}
