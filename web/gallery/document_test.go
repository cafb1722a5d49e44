package gallery_test

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// outline writes a tree one tag or text per line, attributes in order of
// their names, so that a difference is one line.
func outline(n *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) {
		indent := strings.Repeat(" ", depth)
		switch n.Type {
		case html.ElementNode:
			b.WriteString(indent + "<" + n.Data + attributes(n) + ">\n")
		case html.TextNode:
			if text := strings.TrimSpace(n.Data); text != "" {
				b.WriteString(fmt.Sprintf("%s%q\n", indent, strings.Join(strings.Fields(text), " ")))
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, depth+1)
		}
	}
	walk(n, 0)
	return b.String()
}

func attributes(n *html.Node) string {
	all := slices.Clone(n.Attr)
	slices.SortFunc(all, func(a, b html.Attribute) int { return strings.Compare(a.Key, b.Key) })
	var b strings.Builder
	for _, a := range all {
		if a.Val == "" {
			b.WriteString(" " + a.Key)
			continue
		}
		b.WriteString(fmt.Sprintf(" %s=%q", a.Key, a.Val))
	}
	return b.String()
}

// each calls fn for every element below n, in document order.
func each(n *html.Node, fn func(*html.Node)) {
	if n.Type == html.ElementNode {
		fn(n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		each(c, fn)
	}
}

func find(n *html.Node, match func(*html.Node) bool) *html.Node {
	var found *html.Node
	each(n, func(e *html.Node) {
		if found == nil && match(e) {
			found = e
		}
	})
	return found
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

func inside(n *html.Node, tag string) *html.Node {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Type == html.ElementNode && p.Data == tag {
			return p
		}
	}
	return nil
}

// text is what a reader hears: texts joined, spaces collapsed.
func text(n *html.Node) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}
