package tools

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Limits of a path below a root.
const (
	pathBytesMax    = 1024
	segmentBytesMax = 255 // NAME_MAX of the file systems we know
)

// tempPrefix begins the names of our temporary files; no target may.
const tempPrefix = ".countersign-"

// checkPath refuses what could leave the root or mean something else on
// another system: `../x`, `/x`, `..\x`, `C:\x`. Dots inside a name are fine.
func checkPath(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("the path is empty")
	case len(p) > pathBytesMax:
		return fmt.Errorf("the path is %d bytes long; the limit is %d", len(p), pathBytesMax)
	case !utf8.ValidString(p):
		return fmt.Errorf("the path is not valid UTF-8")
	case strings.HasPrefix(p, "/"):
		return fmt.Errorf("the path %q is absolute; it must lie below the root", p)
	case strings.Contains(p, `\`):
		return fmt.Errorf("the path %q holds a backslash", p)
	case len(p) >= 2 && p[1] == ':':
		return fmt.Errorf("the path %q begins with a drive letter", p)
	case hasControl(p):
		return fmt.Errorf("the path %q holds a control character", p)
	}
	for seg := range strings.SplitSeq(p, "/") {
		switch {
		case seg == "":
			return fmt.Errorf("the path %q has an empty part", p)
		case seg == "." || seg == "..":
			return fmt.Errorf("the path %q has the part %q; it must lie below the root", p, seg)
		case len(seg) > segmentBytesMax:
			return fmt.Errorf("a part of the path is %d bytes long; the limit is %d", len(seg), segmentBytesMax)
		case strings.HasPrefix(seg, tempPrefix):
			return fmt.Errorf("the path %q uses the name %s…, which is kept for temporary files", p, tempPrefix)
		}
	}
	return nil
}

func checkFolder(p string) error {
	if p == "." {
		return nil
	}
	return checkPath(p)
}

func checkRoot(p string) error {
	if !filepath.IsAbs(p) {
		return fmt.Errorf("the folder %q is not absolute: it would depend on where the console was started", p)
	}
	if hasControl(p) {
		return fmt.Errorf("the folder %q holds a control character", p)
	}
	return nil
}

// hasControl reports C0, DEL and C1 control characters.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 })
}
