package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// effectForm is what was typed into the page that settles an effect.
type effectForm struct {
	outcome, evidence, receipt string
	fault                      *problem.Error
	answer                     *pages.TargetAnswer
}

// showEffect is GET /effects/{id}.
func (b *Browser) showEffect(c echo.Context) error {
	return b.effectPage(c, http.StatusOK, effectForm{})
}

func (b *Browser) effectPage(c echo.Context, code int, f effectForm) error {
	s, err := b.desk.EffectStory(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	page, err := b.frame(c, "Effect of "+s.Effect.Path)
	if err != nil {
		return err
	}
	v := b.effectView(s, f, desk.May(who(c), "operate"))
	v.Page = page
	return render(c, code, pages.Effect(v))
}

func (b *Browser) effectView(s desk.EffectStory, f effectForm, may bool) pages.EffectView {
	e := s.Effect
	v := pages.EffectView{Back: parts.Link{Text: "Run " + runName(s.Run), URL: address("/runs/", string(s.Run.ID))}, ID: string(e.ID), Sentence: s.Summary, Status: status(e.Status),
		Facts: b.effectFacts(s), Request: document("Request that was sent", s.Request), Answer: f.answer}
	for i, said := range e.Statements {
		v.Facts = append(v.Facts, parts.Fact{Name: fmt.Sprintf("%d of %d said", i+1, e.Needed), Text: said.Person.Name + " on " + b.at(said.At).Absolute + ": " + choiceTitle(said.Outcome) + ". " + said.Evidence})
	}
	for _, l := range e.Late {
		v.Evidence = append(v.Evidence, pages.EvidenceRow{Kind: l.Kind, By: l.By, At: b.at(l.At), Body: document("", l.Body)})
	}
	switch {
	case e.Status != engine.Unknown:
		v.Settled = &parts.Notice{Tone: "info", Title: "It is " + status(e.Status).Word, Text: e.Message}
		if e.ResolvedBy != "" {
			v.Settled.Text = "Settled by " + e.ResolvedBy + ". " + e.Evidence
		}
		return v
	case s.CanQuery:
		v.Ask = address("/effects/", string(e.ID)) + "/ask"
	default:
		v.CannotAsk = e.Tool + " declares no way to ask what happened."
	}
	v.Notice = &parts.Notice{Tone: "unknown", Title: "Nobody knows whether it happened", Text: strings.TrimSpace(e.Message + " " + e.Said)}
	if !may {
		v.WhyNot = "Operators can say what happened."
		return v
	}
	v.Action, v.Choices = address("/effects/", string(e.ID))+"/resolve", choices(f.outcome)
	v.Text = parts.Field{Name: "evidence", Label: "How do you know?", Hint: "what you looked at and what it showed; kept for ever", Kind: "multiline", Value: f.evidence, Required: true, Error: faultAt(f.fault, "/evidence")}
	v.Receipt = parts.Field{Name: "receipt", Label: "What the target answered, if you have it", Hint: "JSON; becomes the step's output when it happened", Kind: "json", Value: f.receipt, Error: faultAt(f.fault, "/receipt")}
	if faultAt(f.fault, "/outcome") != "" {
		v.Unchosen = "Choose one."
	}
	if f.fault != nil {
		v.Notice = &parts.Notice{Tone: "bad", Title: f.fault.Message, Text: e.Said}
	}
	return v
}

// choices are the four words a person can give, and what follows from each.
func choices(chosen string) []pages.Choice {
	all := []pages.Choice{
		{Value: "happened", Title: "It happened", Then: "The step is completed with the receipt you give. Nothing is sent."},
		{Value: "did_not_send_again", Title: "It did not happen: send it", Then: "It is checked again like any approved action, and then sent once more under the same key."},
		{Value: "did_not_stop", Title: "It did not happen: leave it", Then: "It is not sent. The step ends as abandoned, and the run goes on as its definition says."},
		{Value: "give_up", Title: "I cannot tell: give up", Then: "It stays on record as unknown to everybody. It is not sent again, and the run goes on as its definition says."},
	}
	for i := range all {
		all[i].Selected = all[i].Value == chosen
	}
	return all
}

// choiceTitle is a word a person gave, as its choice is called.
func choiceTitle(outcome string) string {
	for _, c := range choices("") {
		if c.Value == outcome {
			return c.Title
		}
	}
	return outcome
}

func (b *Browser) effectFacts(s desk.EffectStory) []parts.Fact {
	e := s.Effect
	facts := []parts.Fact{
		{Name: "Tool", Text: fmt.Sprintf("%s %d", e.Tool, e.ToolVersion)}, {Name: "Idempotency key", Text: e.Key, Mono: true}, {Name: "Attempts", Text: fmt.Sprint(e.Attempts)},
		{Name: "Sent", Time: b.at(e.SentAt)}, {Name: "Run", Link: &parts.Link{Text: runName(s.Run), URL: address("/runs/", string(s.Run.ID))}},
	}
	if s.Resend != "" {
		facts = append(facts, parts.Fact{Name: "Key protects until", Time: b.at(e.KeyExpiresAt)})
	}
	if e.Approval != "" {
		facts = append(facts, parts.Fact{Name: "Approval", Link: &parts.Link{Text: shortID(string(e.Approval)), URL: address("/approvals/", string(e.Approval))}})
	}
	return append(facts, parts.Fact{Name: "Approved digest", Digest: e.Digest}, parts.Fact{Name: "Request", Digest: e.RequestDigest})
}

// askTarget is POST /effects/{id}/ask: it asks and shows the answer, and
// changes nothing.
func (b *Browser) askTarget(c echo.Context) error {
	asked, err := b.desk.AskTarget(c.Request().Context(), who(c), c.Param("id"))
	if err != nil {
		return err
	}
	answer := &pages.TargetAnswer{Tone: "unknown", Text: "The target does not say. " + asked.Message, At: b.at(now()), Body: document("Answer", json.RawMessage(asked.Body))}
	switch {
	case asked.Happened:
		answer.Tone, answer.Text = "good", "The target says that it happened. "+asked.Message
	case asked.DidNot:
		answer.Tone, answer.Text = "warn", "The target says that it did not happen. "+asked.Message
	}
	return b.effectPage(c, http.StatusOK, effectForm{answer: answer})
}

// resolveEffect is POST /effects/{id}/resolve.
func (b *Browser) resolveEffect(c echo.Context) error {
	f := effectForm{outcome: c.FormValue("outcome"), evidence: c.FormValue("evidence"), receipt: c.FormValue("receipt")}
	in := desk.Resolve{Outcome: f.outcome, Evidence: f.evidence}
	if f.receipt != "" {
		in.Receipt = json.RawMessage(f.receipt)
	}
	effect, err := b.desk.Resolve(c.Request().Context(), who(c), c.Param("id"), in)
	if f.fault = problem.From(err); f.fault != nil {
		if f.fault.Kind != problem.Invalid && f.fault.Kind != problem.Malformed && f.fault.Code != "statement_differs" {
			return err
		}
		return b.effectPage(c, edge.Status(f.fault), f)
	}
	if effect.Status == engine.Unknown {
		say(c, "good", "Recorded", effect.Said)
	} else {
		say(c, "good", "Recorded", "The effect is "+status(effect.Status).Word+". The run goes on accordingly.")
	}
	return see(c, address("/effects/", c.Param("id")))
}
