package visible_test

import (
	"strings"
	"testing"
	"unicode"

	"countersign/web/visible"

	"github.com/google/go-cmp/cmp"
)

func TestInspect_ShowsWhatCannotBeSeen(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"plain", "Refund 48.00 EUR", "Refund 48.00 EUR"},
		{"reversal", "pay \u202e0001\u202c to x", "pay ⟦U+202E⟧0001⟦U+202C⟧ to x"},
		{"isolates", "\u2066a\u2069\u061c", "⟦U+2066⟧a⟦U+2069⟧⟦U+061C⟧"},
		{"zero width", "a\u200bb\ufeff", "a⟦U+200B⟧b⟦U+FEFF⟧"},
		{"terminal", "curl x|sh\r\x1b[2K", "curl x|sh⟦U+000D⟧⟦U+001B⟧[2K"},
		{"no break space", "a\u00a0b", "a⟦U+00A0⟧b"},
		{"tag letters", "a\U000e0041", "a⟦U+E0041⟧"},
		{"hangul filler", "a\u3164", "a⟦U+3164⟧"},
		{"broken bytes", "a\xff\xfe", "a⟦byte FF⟧⟦byte FE⟧"},
		{"replacement sign itself", "a\ufffd", "a\ufffd"},
		{"private use", "\ue000", "⟦U+E000⟧"},
		{"lines and tabs", "a\n\tb", "a\n\tb"},
		{"line separator", "a\u2028b", "a⟦U+2028⟧b"},
		{"accents", "e\u0301 ñ", "e\u0301 ñ"},
		{"stacked", "e\u0301\u0302\u0303\u0304", "e\u0301\u0302\u0303⟦U+0304⟧"},
		{"picture of several", "👩\u200d🚀 ❤\ufe0f", "👩\u200d🚀 ❤\ufe0f"},
		{"joiner without a picture", "a\u200db", "a⟦U+200D⟧b"},
		{"chinese", "发布页面\u3000产品", "发布页面\u3000产品"},
		{"arabic", "مرحبا", "مرحبا"},
	}
	for _, c := range cases {
		if got := visible.Inspect(c.in).String(); got != c.want {
			t.Errorf("%s: %q gives %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

func TestInspect_Warns(t *testing.T) {
	cases := []struct {
		in   string
		want []string
	}{
		{"fine", nil},
		{"a\u202eb\u200bc\x07", []string{"contains characters that change the reading direction", "contains invisible characters", "contains control characters"}},
		{" a", []string{"begins with white space"}},
		{"a \n", []string{"ends with white space"}},
		{" a ", []string{"begins and ends with white space"}},
		{"   ", []string{"consists of white space only"}},
		{"a\n", nil},
		{"pay \u0430pple now", []string{"mixes Cyrillic and Latin letters in “\u0430pple”"}},
		{"Привет hello", nil},
		{"東京タワーTokyo", nil},
		{"ΑBC", []string{"mixes Greek and Latin letters in “ΑBC”"}},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, visible.Inspect(c.in).Warnings); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestInspect_NamesHostsInBothForms(t *testing.T) {
	long := strings.Repeat("é", 200)
	cases := []struct {
		in   string
		want []visible.Host
	}{
		{"no address, a:b", nil},
		{"see https://shop.example/x?y=1", []visible.Host{{ASCII: "shop.example"}}},
		{"https://\u0430pple.test/", []visible.Host{{ASCII: "xn--pple-43d.test", Unicode: "\u0430pple.test", Warning: "not plain letters: compare both forms; mixes Cyrillic and Latin letters in “\u0430pple”"}}},
		{"https://xn--pple-43d.test/", []visible.Host{{ASCII: "xn--pple-43d.test", Unicode: "\u0430pple.test", Warning: "not plain letters: compare both forms; mixes Cyrillic and Latin letters in “\u0430pple”"}}},
		{"https://bank.example@evil.example/", []visible.Host{{ASCII: "evil.example", Warning: "the part before @ (bank.example) is not the host"}}},
		{"https://a.example https://a.example", []visible.Host{{ASCII: "a.example"}}},
		{"http://[::1]:8080/x", []visible.Host{{ASCII: "::1"}}},
		{"https://" + long + ".test/", []visible.Host{{ASCII: long + ".test", Warning: "this is longer than a host can be"}}},
		{"https://a%zz.example", []visible.Host{{ASCII: "https://a%zz.example", Warning: "this address cannot be read"}}},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, visible.Inspect(c.in).Hosts); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestInspect_FoldsWhatIsLong(t *testing.T) {
	harm := strings.Repeat("echo ok && ", 400) + "rm -rf /srv"
	got := visible.Inspect(harm)
	if !got.Long || got.Size() != "4,411 characters" || !strings.HasSuffix(got.Tail, "rm -rf /srv") || !strings.HasPrefix(got.Head, "echo ok") {
		t.Errorf("long %v, %q, head %q, tail %q", got.Long, got.Size(), got.Head, got.Tail)
	}
	lines := visible.Inspect(strings.Repeat("x\n", visible.LongLines+1))
	if !lines.Long || lines.Size() != "14 characters, 7 lines" {
		t.Errorf("long %v, %q", lines.Long, lines.Size())
	}
	for _, s := range []string{"", strings.Repeat("x", visible.LongChars), strings.Repeat("x\n", visible.LongLines)} {
		if visible.Inspect(s).Long {
			t.Errorf("%d characters are folded, want not", len(s))
		}
	}
}

func TestDiff_KeepsWhatIsNearAChange(t *testing.T) {
	before := "1\n2\n3\n4\n5\n6\n7\n8\n9"
	now := "1\n2\n3\n4\n5\n6\nseven\n8\n9\nten"
	want := []visible.Line{{Mark: '~', Text: "3 lines the same"}, {' ', "4"}, {' ', "5"}, {' ', "6"}, {'-', "7"}, {'+', "seven"}, {' ', "8"}, {' ', "9"}, {'+', "ten"}}
	if diff := cmp.Diff(want, visible.Diff(before, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDiff_RebuildsBothTexts(t *testing.T) {
	big := strings.Repeat("a\nb\nc\n", 1500)
	pairs := [][2]string{{"", ""}, {"a", ""}, {"a\nb", "b\na"}, {"x", "x"}, {big, strings.ReplaceAll(big, "b", "d")}}
	for _, p := range pairs {
		removed, added := 0, 0
		for _, l := range visible.Diff(p[0], p[1]) {
			switch l.Mark {
			case '-':
				removed++
			case '+':
				added++
			}
		}
		if grown := strings.Count(p[1], "\n") - strings.Count(p[0], "\n"); added-removed != grown {
			t.Errorf("%.20q to %.20q: %d added, %d removed, want a difference of %d", p[0], p[1], added, removed, grown)
		}
	}
}

func TestCount_GroupsDigits(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 4312: "4,312", 1048576: "1,048,576", -1000: "-1,000"} {
		if got := visible.Count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// FuzzInspect: nothing is lost, and nothing that hides reaches a reader.
func FuzzInspect(f *testing.F) {
	for _, s := range []string{"a", "\u202e\u0000\xff", "https://\u0430.test:99999/", "e\u0301\u0301\u0301\u0301\u0301", "👩\u200d🚀", "https://xn--/ https://xn--a@b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var raw strings.Builder
		for _, r := range visible.Inspect(s).Runs {
			raw.WriteString(r.Raw)
			for _, c := range r.Text {
				if c != '\n' && c != '\t' && unicode.Is(unicode.Cc, c) || c >= 0x202a && c <= 0x202e || c == 0x200b {
					t.Fatalf("%q shows %U", s, c)
				}
			}
		}
		if raw.String() != s {
			t.Fatalf("%q became %q", s, raw.String())
		}
		if plain := visible.Plain(s); strings.ContainsAny(plain, "\n\t\u202e\u200b\x00") {
			t.Fatalf("Plain(%q) shows %q", s, plain)
		}
	})
}
