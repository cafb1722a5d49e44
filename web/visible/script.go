package visible

import (
	"slices"
	"strings"
	"unicode"
)

// scripts are those whose letters are mistaken for one another or that people
// write in; Common and Inherited belong to every script.
var scripts = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian},
	{"Cherokee", unicode.Cherokee}, {"Georgian", unicode.Georgian}, {"Coptic", unicode.Coptic}, {"Lisu", unicode.Lisu},
	{"Hebrew", unicode.Hebrew}, {"Arabic", unicode.Arabic}, {"Devanagari", unicode.Devanagari}, {"Thai", unicode.Thai},
	{"Hangul", unicode.Hangul}, {"Han", unicode.Han}, {"Hiragana", unicode.Hiragana}, {"Katakana", unicode.Katakana},
	{"Bopomofo", unicode.Bopomofo},
}

// together are the scripts that one word may mix (UTS 39, highly restrictive).
var together = [][]string{
	{"Latin", "Han", "Hiragana", "Katakana"},
	{"Latin", "Han", "Bopomofo"},
	{"Latin", "Han", "Hangul"},
}

const mixturesMax = 3 // words that are named in one warning

// mixtures warns of words whose letters come from scripts that are not
// written together.
func mixtures(s string) []string {
	if ascii(s) {
		return nil
	}
	var words []string
	var of []string
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) }) {
		mixed := mixes(w)
		if mixed == nil || slices.Contains(words, w) {
			continue
		}
		words, of = append(words, w), mixed
		if len(words) == mixturesMax {
			break
		}
	}
	if words == nil {
		return nil
	}
	return []string{"mixes " + strings.Join(of, " and ") + " letters in “" + strings.Join(words, "”, “") + "”"}
}

// mixes returns the scripts of the word if they do not belong together.
func mixes(word string) []string {
	if ascii(word) {
		return nil
	}
	var seen []string
	for _, r := range word {
		for _, sc := range scripts {
			if r != 'ー' && unicode.Is(sc.table, r) && !slices.Contains(seen, sc.name) {
				seen = append(seen, sc.name)
			}
		}
	}
	if len(seen) < 2 {
		return nil
	}
	for _, t := range together {
		if !slices.ContainsFunc(seen, func(s string) bool { return !slices.Contains(t, s) }) {
			return nil
		}
	}
	return seen
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
