package parts

import "countersign/web/visible"

func foldMark(r Value) string {
	if r.Change == "changed" {
		return sizeOf(r.Text) + ", changed: show"
	}
	return sizeOf(r.Text) + ": show"
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
