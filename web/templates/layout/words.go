package layout

import "github.com/a-h/templ"

func language(p Page) string {
	if p.Lang == "" {
		return "en"
	}
	return p.Lang
}

func theme(p Page) templ.Attributes {
	if p.Theme == "light" || p.Theme == "dark" {
		return templ.Attributes{"data-theme": p.Theme}
	}
	return nil
}

func current(i RailItem) templ.Attributes {
	a := templ.Attributes{}
	if i.Current {
		a["aria-current"] = "page"
	}
	if i.Key != "" {
		a["data-go"] = i.Key
	}
	return a
}

func bodyClass(p Page) string {
	if p.Person == nil {
		return "bare"
	}
	return "framed"
}

// keys is the keyboard, as the script has it.
var keys = []struct {
	caps []string
	does string
}{
	{[]string{"j", "k"}, "next, previous row"},
	{[]string{"Enter"}, "open the row"},
	{[]string{"/"}, "search"},
	{[]string{"g", "i"}, "For me"},
	{[]string{"g", "w"}, "Waiting on others"},
	{[]string{"g", "d"}, "My decisions"},
	{[]string{"g", "r"}, "Runs"},
	{[]string{"g", "a"}, "Needs attention"},
	{[]string{"a"}, "get ready to approve"},
	{[]string{"Shift", "Enter"}, "confirm, once ready"},
	{[]string{"r"}, "reject: goes to the reason"},
	{[]string{"e"}, "edit"},
	{[]string{"c"}, "comment"},
	{[]string{"[", "]"}, "older, newer revision"},
	{[]string{"y"}, "copy the digest"},
	{[]string{"Esc"}, "close, or do not approve after all"},
	{[]string{"?"}, "this list"},
}
