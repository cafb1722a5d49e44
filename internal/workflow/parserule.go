package workflow

import (
	"fmt"
	"slices"
	"strings"

	"countersign/internal/strictyaml"
)

// rules reads where control goes after the step; what is not said gets the
// safe default: on to the next step, or an end that shows.
func (p *parser) rules(st *formStep, m *strictyaml.Map, at string) {
	st.Then = Rule{Do: DoNext}
	if n := m.Get("then"); n != nil {
		st.Then = p.rule(n, at+"/then", st.ID, DoNext, DoEnd)
	}
	st.OnError = map[string]Rule{defaultClass: {Do: DoFail}}
	if n := m.Get("on_error"); n != nil {
		p.onError(st, n, at+"/on_error")
	}
	if st.rejects() {
		st.OnReject = &Rule{Do: DoEnd}
		if n := m.Get("on_reject"); n != nil {
			*st.OnReject = p.rule(n, at+"/on_reject", st.ID, DoEnd)
		}
	}
	switch n := m.Get("on_expire"); {
	case st.expires():
		st.OnExpire = &Rule{Do: DoEnd}
		if n != nil {
			*st.OnExpire = p.rule(n, at+"/on_expire", st.ID, DoEnd, askAgain)
		}
	case n != nil && st.Kind == Ask && m.Get("answer_within") == nil:
		p.fault(n, "on_expire needs answer_within: without it the question stays open until it is answered")
	}
}

// rejects and expires report which ways the step may end beside its own.

func (st *formStep) rejects() bool { return st.Kind == Action || st.Kind == Gate }

func (st *formStep) expires() bool {
	return st.Kind == Action || st.Kind == Gate || st.Kind == Ask && st.AnswerWithin > 0
}

// askAgain is written in on_expire only; it is a goto to the step itself.
const askAgain = "ask_again"

// onError reads one rule for all failures, or a map of rules by class.
func (p *parser) onError(st *formStep, n *strictyaml.Node, at string) {
	words := []string{DoFail, DoEnd, DoAsk}
	if n.Kind != strictyaml.KindMap || n.Map(&p.problems).Has("goto") {
		p.mark(at, n)
		st.OnError[defaultClass] = p.rule(n, at+"/"+defaultClass, st.ID, words...)
		return
	}
	m := p.mark(at, n).Map(&p.problems, append(slices.Clone(Classes), defaultClass)...)
	for _, class := range m.Keys() {
		if class == defaultClass || slices.Contains(Classes, class) {
			st.OnError[class] = p.rule(m.Get(class), at+"/"+class, st.ID, words...)
		}
	}
}

// rule reads one of the words, or {goto, max_passes}, or {ask_again, max_passes}.
func (p *parser) rule(n *strictyaml.Node, at, self string, words ...string) Rule {
	p.mark(at, n)
	if n.Kind != strictyaml.KindMap {
		word := n.String(&p.problems)
		if slices.Contains(words, word) && word != askAgain {
			return Rule{Do: word}
		}
		hint := ""
		if near := strictyaml.Nearest(word, words); near != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", near)
		}
		p.fault(n, "%q is not a rule here%s: it is %s", word, hint, ruleForms(words))
		return Rule{Do: words[0]}
	}
	known := []string{"goto", "max_passes"}
	if slices.Contains(words, askAgain) {
		known = append(known, askAgain)
	}
	m := n.Map(&p.problems, known...)
	r := Rule{Do: DoGoto, To: self}
	if again := m.Get(askAgain); again != nil {
		if m.Get("goto") != nil {
			p.fault(again, "a rule either asks again or goes somewhere else, not both")
		} else if !again.Bool(&p.problems) {
			p.fault(again, "ask_again is true or left out")
		}
	} else if to := m.Need("goto"); to != nil {
		r.To = p.mark(at+"/goto", to).String(&p.problems)
	}
	if m.Get("max_passes") != nil {
		r.MaxPasses = p.integer(m, "max_passes", at+"/max_passes")
	}
	return r
}

// ruleForms lists the ways a rule may be written, for messages.
func ruleForms(words []string) string {
	var forms []string
	for _, word := range words {
		if word == askAgain {
			word = "{ask_again: true, max_passes: N}"
		}
		forms = append(forms, word)
	}
	return strings.Join(append(forms, "{goto: STEP, max_passes: N}"), " or ")
}

// kindList and article are for messages.

func kindList(kinds []Kind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, " and ")
}

func article(k Kind) string {
	if k == Action || k == Gate || k == Ask {
		return "an " + string(k)
	}
	return "a " + string(k)
}
