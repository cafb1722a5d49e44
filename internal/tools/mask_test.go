package tools

import "testing"

func TestMask_HidesEveryFormOfASecret(t *testing.T) {
	m := &mask{}
	m.add(`pa"ss word/1&é`)
	for in, want := range map[string]string{
		`x pa"ss word/1&é y`:            "x *** y",
		`{"k":"pa\"ss word/1&é"}`:       `{"k":"***"}`,
		`{"k":"pa\"ss word/1\u0026é"}`:  `{"k":"***"}`,
		"q=pa%22ss+word%2F1%26%C3%A9":   "q=***",
		"q=pa%22ss%20word%2F1%26%C3%A9": "q=***",
		"nothing to hide":               "nothing to hide",
		`pa"ss word/1&épa"ss word/1&é`:  "******",
	} {
		if got := m.text(in); got != want {
			t.Errorf("text(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMask_HidesTheBeginningOfASecretWhereTextWasCut(t *testing.T) {
	m := &mask{}
	m.add("topsecret-value")
	if got := string(m.bytes([]byte("body topsecret-v"), true)); got != "body ***" {
		t.Errorf("cut: %q", got)
	}
	if got := string(m.bytes([]byte("body tops"), false)); got != "body tops" {
		t.Errorf("whole: %q", got)
	}
}
