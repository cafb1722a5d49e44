package e2e_test

import (
	"strings"
	"testing"
	"time"
)

// Without script every page is complete and every form works: these walk all
// of them that deciding and editing do not (see decide_test.go).

// fetched is what a link's address answers in this session: status, a space
// and the body.
func (b *tab) fetched(css string) string {
	b.t.Helper()
	b.see(css)
	return evaluate[string](b, `(() => {
		const x = new XMLHttpRequest();
		x.open('GET', document.querySelector(`+"`"+css+"`"+`).href, false);
		x.send();
		return x.status + ' ' + x.responseText;
	})()`)
}

// choose picks an option of a list by its value, with the keyboard's means:
// no event of a script is needed for a form to send it.
func (b *tab) choose(css, value string) {
	b.t.Helper()
	b.see(css)
	evaluate[string](b, `document.querySelector(`+"`"+css+"`"+`).value = `+"`"+value+"`")
}

func TestNoScript_StartCommentRejectResumeCancel(t *testing.T) {
	w := open(t)
	dev, ana := w.browse(t, false), w.browse(t, false)

	dev.signIn(w.with(t, "builder"), "/runs")
	dev.click(`a[href="/runs/new"]`)
	dev.click(`.choices a[href*="workflow=refund"]`)
	dev.fill(`input[name="/order_id"]`, "12")
	dev.fill(`input[name="/amount"]`, "30000")
	dev.fill(`textarea[name="/why"]`, "The parcel never came.")
	dev.click(`main form button.primary`)
	dev.see(".field-error")
	dev.says("does not match the pattern")
	if dev.value(`textarea[name="/why"]`) != "The parcel never came." {
		t.Error("what was typed is gone after a refusal")
	}
	dev.fill(`input[name="/order_id"]`, "47210")
	dev.click(`main form button.primary`)
	dev.see(".run")
	run := dev.where()
	dev.eventually("a request", func() bool { dev.open(run); return strings.Contains(dev.text(), "Open the request") })
	dev.click(`.waits a.button`)
	dev.see("#aside")
	request, _, _ := strings.Cut(dev.where(), "?")
	dev.says("You cannot decide this")
	dev.fill("#remark", "The carrier has been asked.")
	dev.click(".remark button")
	dev.says("The carrier has been asked.")

	ana.signIn(w.with(t, "finance"), request)
	ana.says("The carrier has been asked.")
	ana.click("#reject summary")
	ana.click("#reject button.danger") // without a reason
	ana.see("#reject .field-error")
	ana.click(`#reject input[value="Wrong amount or content."]`)
	ana.fill("#reject textarea", "The order was 20.00.")
	ana.click("#reject button.danger")
	ana.says("Rejected by Ana Lindqvist")
	ana.says("Wrong amount or content. The order was 20.00.")
	dev.eventually("the run's end", func() bool { dev.open(run); return strings.Contains(dev.text(), "It has ended") })

	other, _ := w.refund(t, "47220", 30000)
	ana.open("/runs/" + other)
	ana.click(`form.resume button`)
	ana.see(".flash .notice")
	ana.click(".run-actions .revoke summary")
	ana.click(".run-actions .revoke button.danger") // without a reason
	ana.see(".run-actions .field-error")
	ana.fill(`.run-actions textarea`, "Asked for twice.")
	ana.click(".run-actions .revoke button.danger")
	ana.says("Cancelled")
	w.until(t, other, "cancelled")
	ana.click(`.run a[href*="/checkpoints/"]`)
	ana.says("the run was cancelled")
	ana.click(".pager a")
	ana.says("asks for approval")
	for _, order := range []string{"47210", "47220"} {
		if n := w.refunds(t, order); n != 0 {
			t.Errorf("%d refunds of order %s happened, want none", n, order)
		}
	}
}

func TestNoScript_TakeAnApprovalBackIsOfferedOrSaysWhyNot(t *testing.T) {
	w := open(t)
	run, approval := w.refund(t, "47230", 12500)
	b := w.browse(t, false)
	b.signIn(w.with(t, "finance"), "/approvals/"+approval)
	b.click("#arm")
	b.see("#confirm-button")
	b.click("#confirm-button")
	w.until(t, run, "completed")
	b.open("/approvals/" + approval)
	b.says("it can no longer be taken back")
	if got := b.fetched(`a[href$="/receipt"]`); !strings.HasPrefix(got, "200 {") {
		t.Errorf("the receipt answers %.80q", got)
	}
	if got := b.fetched(`a.exact[href$="/subject"]`); !strings.HasPrefix(got, "200 {") {
		t.Errorf("the exact bytes answer %.80q", got)
	}
}

func TestNoScript_SettleAnUnknownOutcome(t *testing.T) {
	w := open(t)
	b := w.browse(t, false)
	b.signIn(w.with(t, "operator"), "/attention")
	b.eventually("an unknown outcome", func() bool {
		if strings.Contains(b.text(), "Outcome unknown") {
			return true
		}
		time.Sleep(500 * time.Millisecond)
		b.open("/attention")
		return false
	})
	b.click(`main a.button[href^="/effects/"]`)
	b.says("Nobody knows whether it happened")
	b.click(`form[action$="/resolve"] .act-bar button`) // without a word
	b.see(".field-error")
	b.click(`input[value="did_not_stop"]`)
	b.fill(`textarea[name="evidence"]`, "The service log shows no restart.")
	b.click(`form[action$="/resolve"] .act-bar button`)
	b.says("The service log shows no restart.")
	b.open("/attention")
	if strings.Contains(b.text(), "Outcome unknown") {
		t.Error("what was settled still needs attention")
	}
}

func TestNoScript_SearchVerifyExport(t *testing.T) {
	w := open(t)
	_, approval := w.refund(t, "47240", 30000)
	ana := w.browse(t, false)
	ana.signIn(w.with(t, "finance"), "/inbox")
	ana.fill("#search", "47240\r")
	ana.eventually("the one request that was searched for", func() bool {
		return strings.Contains(ana.text(), "order 47240") && !strings.Contains(ana.text(), "reports/2026")
	})
	ana.click(`.row a[href*="` + approval + `"]`)
	ana.see("#act")
	ana.open("/approvals")
	ana.click(".filters summary")
	ana.choose("#filter-risk", "medium")
	ana.click(".filter-fields button")
	ana.says("Risk: medium")
	ana.click(".chips .chip")
	ana.says("order 47240")
	ana.open("/definitions")
	ana.click(`a[href="/definitions/explain"]`)
	ana.choose(`select[name="tool"]`, "shop.refund")
	ana.fill(`textarea[name="params"]`, `{"order_id":"47240","amount":`)
	ana.click(`main form button.primary`)
	ana.see(".notice")
	ana.fill(`textarea[name="params"]`, `{"order_id":"47240","amount":90000,"currency":"EUR"}`)
	ana.choose(`select[name="tool"]`, "shop.refund")
	ana.click(`main form button.primary`)
	ana.says("large-refunds")

	chloe := w.browse(t, false)
	chloe.signIn(w.with(t, "auditor"), "/audit")
	chloe.click(`form[action="/audit/verify"] button`)
	chloe.says("The log verifies")
	chloe.open("/audit")
	if got := chloe.fetched(`a[href="/audit/export.jsonl"]`); !strings.HasPrefix(got, "200 {") {
		t.Errorf("the JSON Lines answer %.80q", got)
	}
	if got := chloe.fetched(`a[href="/audit/export.csv"]`); !strings.HasPrefix(got, "200 ") || strings.Count(got, "\n") < 5 {
		t.Errorf("the CSV answers %.80q", got)
	}
	if got := chloe.fetched(`a[href="/audit/head"]`); !strings.HasPrefix(got, "200 ") {
		t.Errorf("the head answers %.80q", got)
	}
	chloe.click(`main a[href^="/audit/entries/"]`)
	chloe.says("Included under the signed head")
}

func TestNoScript_PeopleTokensSessions(t *testing.T) {
	w := open(t)
	chloe := w.browse(t, false)
	admin := w.with(t, "admin")
	chloe.signIn(admin, "/people")
	add := `form[action="/people"]`
	chloe.unfold(add)
	chloe.fill(add+` input[name="name"]`, "Eva Brandt")
	chloe.fill(add+` input[name="email"]`, "eva@demo.example")
	chloe.fill(add+` input[name="password"]`, "short")
	chloe.click(add + ` button.primary`)
	chloe.see(add + " .field-error")
	if chloe.value(add+` input[name="name"]`) != "Eva Brandt" {
		t.Error("what was typed is gone after a refusal")
	}
	eva := account{Email: "eva@demo.example", Password: "countersign demo for eva"}
	chloe.fill(add+` input[name="password"]`, eva.Password)
	chloe.click(add + ` input[value="builder"]`)
	chloe.click(add + ` button.primary`)
	chloe.says("Eva Brandt was added")
	chloe.click(`summary[aria-label="Roles of Eva Brandt"]`)
	chloe.click(`li:has(summary[aria-label="Roles of Eva Brandt"]) input[value="viewer"]`)
	chloe.click(`li:has(summary[aria-label="Roles of Eva Brandt"]) .panel button`)
	chloe.says("The roles were changed")

	b := w.browse(t, false)
	b.signIn(eva, "/account")
	b.says("builder, viewer")
	make := `form[action="/account/tokens"]`
	b.unfold(make)
	b.click(make + " button") // without a name
	b.see(make + " .field-error")
	b.fill(make+` input[name="name"]`, "my script")
	b.choose(make+` select[name="expires"]`, "24h")
	b.click(make + ` input[value="runs:read"]`)
	b.click(make + " button")
	b.see(".secret")
	secret := evaluate[string](b, `document.querySelector('.secret').textContent`)
	if !strings.HasPrefix(secret, "cst_") {
		t.Errorf("the new token is shown as %q", secret)
	}
	b.click(`button[aria-label="Revoke token my script"]`)
	b.says("The token ended")
	again := w.browse(t, false)
	again.signIn(eva, "/account")
	b.open("/account")
	b.click(`button[aria-label^="End session"]`)
	b.says("The session ended")
	again.open("/account")
	if !strings.HasPrefix(again.where(), "/signin") {
		t.Errorf("a session that was ended still shows %s", again.where())
	}
	password := `form[action="/account/password"]`
	b.fill(password+` input[name="old"]`, "not it")
	b.fill(password+` input[name="new"]`, "another long passphrase")
	b.fill(password+` input[name="again"]`, "another long passphrase")
	b.click(password + " button")
	b.see(".notice")
	b.fill(password+` input[name="old"]`, eva.Password)
	b.fill(password+` input[name="new"]`, "another long passphrase")
	b.fill(password+` input[name="again"]`, "another long passphrase")
	b.click(password + " button")
	b.see(`input[name="email"]`)
	eva.Password = "another long passphrase"
	b.signIn(eva, "/account")

	chloe.open("/people")
	chloe.click(`button[aria-label="Disable Eva Brandt"]`)
	chloe.says("Their sessions and tokens ended")
	b.open("/account")
	if !strings.HasPrefix(b.where(), "/signin") {
		t.Errorf("somebody disabled still sees %s", b.where())
	}
	chloe.click(`button[aria-label="Enable Eva Brandt"]`)
	chloe.says("They can sign in again")
	chloe.open("/account")
	chloe.click(`form[action="/signout"] button`)
	chloe.see(`input[name="password"]`)
	chloe.open("/people")
	if !strings.HasPrefix(chloe.where(), "/signin") {
		t.Errorf("after signing out, people leads to %s", chloe.where())
	}
}

// unfold opens what a form is folded into, if it is.
func (b *tab) unfold(css string) {
	b.t.Helper()
	if evaluate[bool](b, `!document.querySelector(`+"`"+css+"`"+`).checkVisibility()`) {
		b.click(`details:has(` + css + `) > summary`)
	}
	b.see(css)
}

func TestNoScript_AnswerWhatARunAsks(t *testing.T) {
	w := open(t)
	dev, ana := w.browse(t, false), w.browse(t, false)
	dev.signIn(w.with(t, "builder"), "/runs/new")
	dev.click(`.choices a[href*="workflow=goodwill"]`)
	dev.fill(`input[name="/order_id"]`, "47210")
	dev.click(`main form button.primary`)
	dev.see(".run")
	run := dev.where()
	dev.eventually("a question", func() bool { dev.open(run); return strings.Contains(dev.text(), "How much of order 47210") })
	dev.says("You may not answer this")

	ana.signIn(w.with(t, "finance"), "/inbox")
	ana.click(`a[href*="#ask-details-1"]`)
	ana.fill(`input[name="/amount"]`, "some")
	ana.fill(`textarea[name="/why"]`, "A chipped mug.")
	ana.click(`.asking button.primary`)
	ana.see(".asking .field-error")
	if ana.value(`input[name="/amount"]`) != "some" || ana.value(`textarea[name="/why"]`) != "A chipped mug." {
		t.Error("what was typed is gone after a refusal")
	}
	ana.fill(`input[name="/amount"]`, "1450")
	ana.click(`.asking button.primary`)
	ana.says("Answered")
	ana.eventually("the end", func() bool {
		ana.open(run)
		return strings.Contains(ana.text(), "Answered by") && strings.Contains(ana.text(), "completed")
	})
}
