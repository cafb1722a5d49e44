package tools

import "testing"

// F14: names that leave the root are refused, dots inside a name are not.
func TestCheckPath_RefusesWhatLeavesTheRootAndNothingElse(t *testing.T) {
	for _, bad := range []string{"", "../x", "a/../../x", "/etc/passwd", `..\x`, `C:\x`, "C:x", "a//b", "a/", ".", "..", "./a", "a/./b",
		"a\x00b", "a\nb", "a/.countersign-eff_1.tmp", string(make([]byte, 2000))} {
		if err := checkPath(bad); err == nil {
			t.Errorf("checkPath(%q) allowed it", bad)
		}
	}
	for _, fine := range []string{"foo..bar", ".foo", "foo/.bar", "a/b/c.md", "...", "ä b.md", "reports/2026-W01.md"} {
		if err := checkPath(fine); err != nil {
			t.Errorf("checkPath(%q): %v", fine, err)
		}
	}
}

func TestCheckRoot_MustBeAbsolute(t *testing.T) {
	for root, ok := range map[string]bool{"/srv/kb": true, "kb": false, "": false, "./kb": false} {
		if err := checkRoot(root); (err == nil) != ok {
			t.Errorf("checkRoot(%q) = %v", root, err)
		}
	}
}
