package parts

import (
	"strings"

	"countersign/web/visible"
)

func foldMark(r Value) string { return foldSize(r) + ": show" }

func foldSize(r Value) string {
	if r.Change != "" {
		return sizeOf(r.Text) + ", " + r.Change
	}
	return sizeOf(r.Text)
}

func span(v Values) string {
	switch {
	case v.Short:
		return "2"
	case v.traced():
		return "4"
	}
	return "3"
}

func changeWord(change, against string) string {
	if against == "" {
		return change + ": "
	}
	return change + " against " + visible.Plain(against) + ": "
}

func diffClass(mark byte) string {
	switch mark {
	case '-':
		return "gone"
	case '+':
		return "new"
	case '~':
		return "left-out"
	}
	return "same"
}

func diffSign(mark byte) string {
	switch mark {
	case '-':
		return "−"
	case '+':
		return "+"
	}
	return " "
}

func diffWord(mark byte) string {
	switch mark {
	case '-':
		return "removed: "
	case '+':
		return "added: "
	}
	return ""
}

// sameWord reports whether a title says no more than the name does.
func sameWord(title, name string) bool {
	return strings.EqualFold(title, strings.ReplaceAll(name, "_", " "))
}
