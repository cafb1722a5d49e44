// Package nearest finds the known word a person most likely meant when they
// wrote an unknown one, for messages such as: unknown key "aprovers"; did you
// mean "approvers"?
//
// It guarantees that it suggests nothing rather than something far away. It
// must not know what the words stand for.
package nearest

import "strings"

// wordMax bounds the work per word, in bytes; longer words get no suggestion.
const wordMax = 64

// Word returns the entry of known that is closest to word, or "" when none is
// near. Case, hyphens and underscores count for nothing; otherwise one edit
// (insert, delete, change, swap of neighbours) is allowed for every three
// letters, and at least one. The first of equals wins.
func Word(word string, known []string) string {
	if len(word) == 0 || len(word) > wordMax {
		return ""
	}
	best, bestAway := "", 1+max(1, len(word)/3)
	for _, k := range known {
		if len(k) == 0 || len(k) > wordMax {
			continue
		}
		if away := distance(plain(word), plain(k)); away < bestAway && away < len(k) {
			best, bestAway = k, away
		}
	}
	return best
}

func plain(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// distance is the optimal string alignment distance (Damerau-Levenshtein
// without repeated edits of one substring).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
