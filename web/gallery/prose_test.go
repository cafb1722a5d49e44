package gallery_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// prose are the elements that stand in a line of text.
var prose = map[string]bool{"bdi": true, "time": true, "code": true, "a": true, "strong": true, "span": true, "del": true, "ins": true}

// apart are classes whose parts the style sheet keeps apart.
var apart = regexp.MustCompile(`\b(hash|act-bar|confirm-facts|revisions|compare|chip|tag|row-|badge|escape|under|soft|sr|value-name|reading|stored|stage-|clock|rail|brand|group-need|fold|glimpse|count|node|diff-|choice|person-name|person-who|people|posture|connection|masked|title-line|document-title|step-)`)

func edgeRunes(n *html.Node) (first, last rune) {
	s := raw(n)
	if s == "" {
		return 0, 0
	}
	first, _ = utf8.DecodeRuneInString(s)
	last, _ = utf8.DecodeLastRuneInString(s)
	return first, last
}

func raw(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(raw(c))
	}
	return b.String()
}

// TestPages_KeepWordsApart: a component in the middle of a sentence neither
// runs into the word before it nor leaves a gap before a comma.
func TestPages_KeepWordsApart(t *testing.T) {
	inline := func(n *html.Node) bool {
		return n.Type == html.TextNode || n.Type == html.ElementNode && prose[n.Data] && !apart.MatchString(attr(n, "class"))
	}
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	everywhere(t, func(t *testing.T, doc *html.Node) {
		each(doc, func(n *html.Node) {
			if apart.MatchString(attr(n, "class")) {
				return
			}
			for c := n.FirstChild; c != nil && c.NextSibling != nil; c = c.NextSibling {
				if !inline(c) || !inline(c.NextSibling) || c.Data == "script" {
					continue
				}
				_, last := edgeRunes(c)
				first, _ := edgeRunes(c.NextSibling)
				if word(last) && word(first) {
					t.Errorf("<%s class=%q>: %.40q runs into %.40q", n.Data, attr(n, "class"), raw(c), raw(c.NextSibling))
				}
				if unicode.IsSpace(last) && strings.ContainsRune(",.;:”", first) {
					t.Errorf("<%s class=%q>: a gap after %.40q", n.Data, attr(n, "class"), raw(c))
				}
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				if c.Type == html.TextNode && c.PrevSibling != nil && regexp.MustCompile(`^\s+[,.;:”]`).MatchString(c.Data) {
					t.Errorf("<%s class=%q>: a gap before %.40q", n.Data, attr(n, "class"), c.Data)
				}
			}
		})
	})
}
