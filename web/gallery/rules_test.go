package gallery_test

import (
	"strings"
	"testing"

	"countersign/web/gallery"

	"golang.org/x/net/html"
)

// everywhere checks a rule on every page.
func everywhere(t *testing.T, rule func(t *testing.T, doc *html.Node)) {
	t.Helper()
	for _, e := range gallery.Exhibits() {
		t.Run(e.Name, func(t *testing.T) { rule(t, parse(t, e)) })
	}
}

func TestPages_HaveOneH1AndLandmarks(t *testing.T) {
	everywhere(t, func(t *testing.T, doc *html.Node) {
		count := map[string]int{}
		each(doc, func(n *html.Node) { count[n.Data]++ })
		for tag, want := range map[string]int{"h1": 1, "main": 1, "header": -1, "title": 1} {
			if got := count[tag]; want >= 0 && got != want || got == 0 {
				t.Errorf("%d <%s>, want %d", got, tag, want)
			}
		}
		if root := find(doc, func(n *html.Node) bool { return n.Data == "html" }); attr(root, "lang") == "" {
			t.Error("the document has no language")
		}
	})
}

func TestPages_SkipNoHeadingLevel(t *testing.T) {
	everywhere(t, func(t *testing.T, doc *html.Node) {
		last := byte('1')
		each(find(doc, func(n *html.Node) bool { return n.Data == "main" }), func(n *html.Node) {
			if len(n.Data) != 2 || n.Data[0] != 'h' || n.Data[1] < '1' || n.Data[1] > '6' {
				return
			}
			if n.Data[1] > last+1 {
				t.Errorf("<%s> %q follows an h%c", n.Data, text(n), last)
			}
			last = n.Data[1]
		})
	})
}

func TestPages_LabelEveryControl(t *testing.T) {
	everywhere(t, func(t *testing.T, doc *html.Node) {
		labelled := map[string]bool{}
		each(doc, func(n *html.Node) {
			if n.Data == "label" {
				labelled[attr(n, "for")] = text(n) != ""
			}
		})
		each(doc, func(n *html.Node) {
			switch n.Data {
			case "input", "select", "textarea":
				if attr(n, "type") != "hidden" && !labelled[attr(n, "id")] && inside(n, "label") == nil {
					t.Errorf("<%s name=%q> has no label", n.Data, attr(n, "name"))
				}
			case "button", "a", "summary":
				if text(n) == "" && attr(n, "aria-label") == "" && !has(n, "hidden") && find(n, func(e *html.Node) bool { return e.Data == "g" }) == nil {
					t.Errorf("<%s%s> has no name", n.Data, attributes(n))
				}
			}
		})
	})
}

func TestPages_HaveNoDoubleIDAndNoDanglingReference(t *testing.T) {
	everywhere(t, func(t *testing.T, doc *html.Node) {
		ids := map[string]int{}
		each(doc, func(n *html.Node) {
			if has(n, "id") {
				ids[attr(n, "id")]++
			}
		})
		for id, n := range ids {
			if n > 1 || id == "" {
				t.Errorf("id %q stands %d times", id, n)
			}
		}
		each(doc, func(n *html.Node) {
			for _, key := range []string{"for", "aria-labelledby", "aria-describedby"} {
				for _, id := range strings.Fields(attr(n, key)) {
					if ids[id] == 0 {
						t.Errorf("<%s %s=%q> names nothing", n.Data, key, id)
					}
				}
			}
		})
	})
}

func TestPages_CarryNoInlineCode(t *testing.T) {
	everywhere(t, func(t *testing.T, doc *html.Node) {
		each(doc, func(n *html.Node) {
			if n.Data == "style" || n.Data == "script" && (attr(n, "src") == "" || n.FirstChild != nil) || n.Data == "iframe" || n.Data == "img" {
				t.Errorf("<%s%s>", n.Data, attributes(n))
			}
			for _, a := range n.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
					t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
				}
				if a.Key == "href" && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "?") {
					t.Errorf("<%s href=%q> leaves the site", n.Data, a.Val)
				}
			}
		})
	})
}

// exact are the places that must hold a text as it is, because it is copied
// or sent back.
func exact(n *html.Node, key string) bool {
	return key == "value" || key == "data-copy" || key == "data-original" || n.Data == "textarea"
}

func TestPages_ShowNoDeceptiveCharacter(t *testing.T) {
	const deceptive = "\u202e\u202c\u200b\x1b"
	everywhere(t, func(t *testing.T, doc *html.Node) {
		each(doc, func(n *html.Node) {
			for _, a := range n.Attr {
				if !exact(n, a.Key) && strings.ContainsAny(a.Val, deceptive) {
					t.Errorf("<%s %s> holds a raw control character", n.Data, a.Key)
				}
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				if c.Type == html.TextNode && !exact(n, "") && strings.ContainsAny(c.Data, deceptive) {
					t.Errorf("<%s> in <%s> shows a raw control character: %.60q", n.Data, n.Parent.Data, c.Data)
				}
			}
		})
	})
}

func TestPages_IsolateTextsFromOutside(t *testing.T) {
	everywhere(t, func(t *testing.T, doc *html.Node) {
		each(doc, func(n *html.Node) {
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				if c.Type != html.TextNode || !strings.Contains(c.Data, "⟦U+202E⟧") || n.Data == "title" || n.Data == "text" || n.Data == "option" { // an option is a line of its own and holds no elements
					continue
				}
				if n.Data != "bdi" && inside(n, "bdi") == nil && inside(n, "pre") == nil {
					t.Errorf("<%s> shows a foreign text that is not isolated", n.Data)
				}
			}
		})
	})
}

// TestPages_ControlsComeAfterTheEvidence: what decides is behind the policy
// and the digest in the document, and so in tab order; so is the reason, where
// there is one.
func TestPages_ControlsComeAfterTheEvidence(t *testing.T) {
	everywhere(t, func(t *testing.T, doc *html.Node) {
		seen := ""
		each(doc, func(n *html.Node) {
			switch attr(n, "id") {
			case "params-title", "why-title", "policy-title", "digest-title":
				seen += attr(n, "id") + " "
			case "act":
				if strings.Replace(seen, "why-title ", "", 1) != "params-title policy-title digest-title " || strings.Contains(seen, "why-title") && !strings.HasPrefix(seen, "params-title why-title") {
					t.Errorf("before the controls stand only: %s", seen)
				}
			}
			if n.Data != "details" && has(n, "tabindex") && attr(n, "tabindex") > "0" {
				t.Errorf("<%s tabindex=%q> changes the tab order", n.Data, attr(n, "tabindex"))
			}
			if has(n, "autofocus") && n.Data == "button" {
				t.Error("the focus starts on a button")
			}
		})
	})
}

// TestPages_EnterInAFieldDecidesNothing: the first button of a form that
// decides, which is the one Enter presses, is off.
func TestPages_EnterInAFieldDecidesNothing(t *testing.T) {
	decides := []string{"/decision", "/revoke", "/resolve", "/cancel", "/edit", "/answers"}
	everywhere(t, func(t *testing.T, doc *html.Node) {
		each(doc, func(form *html.Node) {
			typed := func(n *html.Node) bool {
				return n.Data == "input" && attr(n, "type") != "hidden" || n.Data == "textarea"
			}
			if form.Data != "form" || attr(form, "method") != "post" || find(form, typed) == nil {
				return
			}
			for _, d := range decides {
				if !strings.HasSuffix(attr(form, "action"), d) {
					continue
				}
				first := find(form, func(n *html.Node) bool { return n.Data == "button" })
				if first == nil || !has(first, "disabled") || attr(first, "type") != "submit" {
					t.Errorf("Enter in a field of %s sends it", attr(form, "action"))
				}
			}
		})
	})
}

// TestPages_GETFormsOnlyRead: a form without POST goes to a list or to the
// page with the confirm step.
func TestPages_GETFormsOnlyRead(t *testing.T) {
	everywhere(t, func(t *testing.T, doc *html.Node) {
		each(doc, func(n *html.Node) {
			if n.Data == "form" && attr(n, "method") == "get" && !strings.Contains(attr(n, "class"), "search") && attr(n, "class") != "arm" {
				t.Errorf("<form%s>", attributes(n))
			}
		})
	})
}
