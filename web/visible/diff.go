package visible

import "strings"

// Line is one line of a comparison.
type Line struct {
	Mark byte // ' ' in both, '-' only before, '+' only now, '~' lines left out, whose number Text is
	Text string
}

// Limits of a comparison. Beyond diffWork the part that differs is shown as
// removed and added whole: correct, only less helpful.
const (
	diffContext = 3         // equal lines shown around a change
	diffWork    = 1_000_000 // cells of the table
)

// Diff compares two texts line by line, equal stretches left out but for
// their ends.
func Diff(before, now string) []Line {
	a, b := strings.Split(before, "\n"), strings.Split(now, "\n")
	var head, tail []Line
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head, a, b = append(head, Line{' ', a[0]}), a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, Line{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	all := append(head, middle(a, b)...)
	for i := len(tail) - 1; i >= 0; i-- {
		all = append(all, tail[i])
	}
	return shorten(all)
}

// middle aligns what is left by a longest common subsequence.
func middle(a, b []string) []Line {
	var out []Line
	if len(a)*len(b) > diffWork {
		return append(marked('-', a), marked('+', b)...)
	}
	length := make([][]int32, len(a)+1)
	for i := range length {
		length[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out, i, j = append(out, Line{' ', a[i]}), i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			out, i = append(out, Line{'-', a[i]}), i+1
		default:
			out, j = append(out, Line{'+', b[j]}), j+1
		}
	}
	return append(append(out, marked('-', a[i:])...), marked('+', b[j:])...)
}

func marked(mark byte, lines []string) []Line {
	var out []Line
	for _, l := range lines {
		out = append(out, Line{mark, l})
	}
	return out
}

// shorten leaves out equal lines that are far from any change.
func shorten(all []Line) []Line {
	keep := make([]bool, len(all))
	for i, l := range all {
		if l.Mark == ' ' {
			continue
		}
		for k := max(0, i-diffContext); k <= min(len(all)-1, i+diffContext); k++ {
			keep[k] = true
		}
	}
	var out []Line
	for i := 0; i < len(all); i++ {
		if keep[i] {
			out = append(out, all[i])
			continue
		}
		n := i
		for n < len(all) && !keep[n] {
			n++
		}
		out = append(out, Line{'~', Count(n-i) + " lines the same"})
		i = n - 1
	}
	return out
}
