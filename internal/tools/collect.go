package tools

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// collectError is a folder that cannot be read as asked: a limit passed, a
// file that is not text. Reading it again gives the same.
type collectError struct{ text string }

func (e *collectError) Error() string { return e.text }

func tooMuch(format string, args ...any) error { return &collectError{fmt.Sprintf(format, args...)} }

// collect reads the matching files below a folder of root, sorted by path.
// Links and folders whose name begins with a dot are passed over.
func collect(ctx context.Context, root string, c collectSpec) (any, error) {
	r, err := openRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	names, err := matching(ctx, r, c)
	if err != nil {
		return nil, err
	}
	docs, total := []any{}, 0
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("the time for reading ran out: %w", err)
		}
		text, err := readText(r, name, c.MaxBytesEach)
		if err != nil {
			return nil, err
		}
		if total += len(text); total > c.MaxBytes {
			return nil, tooMuch("the files in %q hold more than max_bytes, %d bytes, together; choose a smaller folder or raise the limit", c.Folder, c.MaxBytes)
		}
		docs = append(docs, map[string]any{
			"path": name, "title": heading(text, name), "size": float64(len(text)),
			"digest": digestOf([]byte(text)), "text": text,
		})
	}
	return map[string]any{"documents": docs, "count": float64(len(docs))}, nil
}

func matching(ctx context.Context, r *os.Root, c collectSpec) ([]string, error) {
	if st, err := r.Stat(c.Folder); err != nil {
		return nil, fmt.Errorf("look at folder: %w", err)
	} else if !st.IsDir() {
		return nil, tooMuch("%q is not a folder", c.Folder)
	}
	var names []string
	err := fs.WalkDir(r.FS(), c.Folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("walk folder: %w", err)
		case ctx.Err() != nil:
			return fmt.Errorf("the time for reading ran out: %w", ctx.Err())
		case d.IsDir() && name != c.Folder && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular() || !included(c.Include, d.Name()):
			return nil
		}
		if names = append(names, name); len(names) > c.MaxFiles {
			return tooMuch("the folder %q has more than max_files, %d, matching files; choose a smaller folder or raise the limit", c.Folder, c.MaxFiles)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

func included(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return err == nil && ok
	})
}

func readText(r *os.Root, name string, limit int) (string, error) {
	f, err := r.Open(name)
	if err != nil {
		return "", fmt.Errorf("open file: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read file: %w", err)
	case len(b) > limit:
		return "", tooMuch("the file %q is longer than max_bytes_each, %d bytes", name, limit)
	case !utf8.Valid(b):
		return "", tooMuch("the file %q is not UTF-8 text", name)
	}
	return string(b), nil
}

// heading is the first ATX heading of a Markdown text outside fenced code and
// front matter, or the file's name without its ending.
func heading(text, name string) string {
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	if strings.TrimSpace(lines[0]) == "---" {
		if end := slices.IndexFunc(lines[1:], func(l string) bool { return strings.TrimSpace(l) == "---" }); end >= 0 {
			lines = lines[end+2:]
		}
	}
	fence := ""
	for _, line := range lines {
		line = strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(line, fence) {
				fence = ""
			}
		case strings.HasPrefix(line, "```"), strings.HasPrefix(line, "~~~"):
			fence = line[:3]
		case strings.HasPrefix(line, "#"):
			hashes := strings.TrimLeft(line, "#")
			title := strings.TrimSpace(strings.TrimRight(strings.TrimSpace(hashes), "#"))
			if len(line)-len(hashes) <= 6 && (hashes == "" || hashes[0] == ' ' || hashes[0] == '\t') && title != "" {
				return title
			}
		}
	}
	return strings.TrimSuffix(path.Base(name), path.Ext(name))
}
