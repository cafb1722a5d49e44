package tools

import (
	"path"
	"strconv"

	"countersign/internal/expr"
)

// fileCode is a file template ready to be resolved.
type fileCode struct {
	spec                        *fileSpec
	root, path, content, folder *expr.Text
}

func (b *builder) file(pointer string, f *fileSpec) *fileCode {
	c := &fileCode{spec: f, root: b.text(pointer+"/root", f.Root, "config")}
	b.limit(pointer+"/timeout", f.Timeout, httpTimeoutMax)
	if f.Root != "" && f.Root[0] != '/' && !configStart.MatchString(f.Root) {
		b.fault(pointer+"/root", 0, "root begins with / or with ${config.NAME}")
	}
	if b.write() == (f.Collect != nil) {
		b.fault(pointer, 0, "a file tool with effect: write has path and content; with effect: read it has collect")
	}
	if f.Collect == nil {
		c.path = b.text(pointer+"/path", f.Path, inNames...)
		c.content = b.text(pointer+"/content", f.Content, inNames...)
		return c
	}
	c.folder = b.text(pointer+"/collect/folder", f.Collect.Folder, inNames...)
	b.collect(pointer+"/collect", f.Collect)
	return c
}

func (b *builder) collect(pointer string, c *collectSpec) {
	if len(c.Include) == 0 {
		b.fault(pointer+"/include", 0, "include is a list of patterns such as \"*.md\"")
	}
	for i, p := range c.Include {
		if _, err := path.Match(p, "x"); err != nil || p == "" {
			b.fault(pointer+"/include/"+strconv.Itoa(i), 0, "%q is not a pattern for file names", p)
		}
	}
	if c.MaxFiles < 1 || c.MaxFiles > collectFilesMax {
		b.fault(pointer+"/max_files", 0, "max_files is from 1 to %d", collectFilesMax)
	}
	for key, n := range map[string]int{"max_bytes": c.MaxBytes, "max_bytes_each": c.MaxBytesEach} {
		if n < 1 || n > collectBytesMax {
			b.fault(pointer+"/"+key, 0, "%s is at most %dMiB", key, collectBytesMax>>20)
		}
	}
}
