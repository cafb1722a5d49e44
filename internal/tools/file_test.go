package tools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func TestPut_WritesReplacesAndRepeatsLeavingNothingBehind(t *testing.T) {
	root := t.TempDir()
	g := target{root: root, path: "a/b/c.md", content: []byte("one"), effect: "eff_1"}
	if _, err := g.put(context.Background(), absent); err != nil {
		t.Fatal(err)
	}
	if _, err := g.put(context.Background(), absent); err != nil {
		t.Errorf("the same content again: %v", err)
	}
	next := target{root: root, path: "a/b/c.md", content: []byte("two"), effect: "eff_2"}
	if _, err := next.put(context.Background(), g.digest()); err != nil {
		t.Error(err)
	}
	if got := read(t, filepath.Join(root, "a/b/c.md")); got != "two" {
		t.Errorf("content %q", got)
	}
	if diff := cmp.Diff([]string{"c.md"}, entries(t, filepath.Join(root, "a/b"))); diff != "" {
		t.Error(diff)
	}
}

func TestPut_RefusesWhenTheFileIsNotTheOneApproved(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "p.md"), "somebody else's")
	for _, pin := range []string{absent, digestOf([]byte("old"))} {
		g := target{root: root, path: "p.md", content: []byte("new"), effect: "eff_1"}
		if touched, err := g.put(context.Background(), pin); touched || !errors.Is(err, errPinChanged) {
			t.Errorf("pin %s: touched %v, %v", pin, touched, err)
		}
	}
	gone := target{root: root, path: "q.md", content: []byte("new"), effect: "eff_1"}
	if _, err := gone.put(context.Background(), digestOf([]byte("old"))); !errors.Is(err, errPinChanged) {
		t.Errorf("a file that vanished: %v", err)
	}
	if diff := cmp.Diff([]string{"p.md"}, entries(t, root)); diff != "" {
		t.Error(diff)
	}
}

func TestPut_AnEndedContextWritesNothing(t *testing.T) {
	root := t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	stop()
	g := target{root: root, path: "p.md", content: []byte("new"), effect: "eff_1"}
	if touched, err := g.put(ctx, absent); touched || err == nil {
		t.Errorf("touched %v, %v", touched, err)
	}
	if len(entries(t, root)) != 0 {
		t.Errorf("left %v", entries(t, root))
	}
}

func TestPut_SymbolicLinksCannotLeaveTheRoot(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "f.md"), "precious")
	if err := os.Symlink(outside, filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "f.md"), filepath.Join(root, "link.md")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"out/f.md", "out/new.md", "out/sub/new.md", "link.md"} {
		g := target{root: root, path: path, content: []byte("evil"), effect: "eff_1"}
		if touched, err := g.put(context.Background(), absent); touched || err == nil {
			t.Errorf("%s: touched %v, %v", path, touched, err)
		}
	}
	if got := read(t, filepath.Join(outside, "f.md")); got != "precious" || len(entries(t, outside)) != 1 {
		t.Errorf("outside: %q %v", got, entries(t, outside))
	}
}

func TestPut_AFolderInItsPlaceIsAnError(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "p.md", "x"), "")
	g := target{root: root, path: "p.md", content: []byte("new"), effect: "eff_1"}
	if touched, err := g.put(context.Background(), absent); touched || err == nil || errors.Is(err, errPinChanged) {
		t.Errorf("touched %v, %v", touched, err)
	}
}

func TestPut_WhatACrashLeftIsReplaced(t *testing.T) {
	root := t.TempDir()
	g := target{root: root, path: "p.md", content: []byte("new"), effect: "eff_1"}
	write(t, filepath.Join(root, g.temp()), "half of ne")
	if _, err := g.put(context.Background(), absent); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p.md"}, entries(t, root)); diff != "" {
		t.Error(diff)
	}
}

func TestCollect_ReadsSortedWithTitles(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "docs/b.md"), "```\n# not this\n```\n## Second ##\n")
	write(t, filepath.Join(root, "docs/a.md"), "---\ntitle: x\n---\n# First\n")
	write(t, filepath.Join(root, "docs/sub/c.md"), "no heading #here\n#nor here")
	write(t, filepath.Join(root, "docs/skip.txt"), "x")
	write(t, filepath.Join(root, "docs/.git/d.md"), "x")
	if err := os.Symlink(filepath.Join(root, "docs/a.md"), filepath.Join(root, "docs/link.md")); err != nil {
		t.Fatal(err)
	}
	v, err := collect(context.Background(), root, collectSpec{Folder: "docs", Include: []string{"*.md"}, MaxFiles: 3, MaxBytes: 1000, MaxBytesEach: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range v.(map[string]any)["documents"].([]any) {
		got = append(got, d.(map[string]any)["path"].(string)+": "+d.(map[string]any)["title"].(string))
	}
	if diff := cmp.Diff([]string{"docs/a.md: First", "docs/b.md: Second", "docs/sub/c.md: c"}, got); diff != "" {
		t.Error(diff)
	}
	if n := v.(map[string]any)["count"]; n != 3.0 {
		t.Errorf("count %v", n)
	}
}

func TestCollect_EachLimitIsAnErrorThatNamesIt(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "d/a.md"), strings.Repeat("x", 60))
	write(t, filepath.Join(root, "d/b.md"), strings.Repeat("x", 60))
	write(t, filepath.Join(root, "bad/a.md"), "\xff")
	base := collectSpec{Folder: "d", Include: []string{"*.md"}, MaxFiles: 2, MaxBytes: 120, MaxBytesEach: 60}
	for want, change := range map[string]func(*collectSpec){
		"max_files":      func(c *collectSpec) { c.MaxFiles = 1 },
		"max_bytes, 119": func(c *collectSpec) { c.MaxBytes = 119 },
		"max_bytes_each": func(c *collectSpec) { c.MaxBytesEach = 59 },
		"UTF-8":          func(c *collectSpec) { c.Folder = "bad" },
		"no such file":   func(c *collectSpec) { c.Folder = "none" },
		"not a folder":   func(c *collectSpec) { c.Folder = "d/a.md" },
	} {
		c := base
		change(&c)
		if _, err := collect(context.Background(), root, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	if _, err := collect(context.Background(), root, base); err != nil {
		t.Errorf("exactly at every limit: %v", err)
	}
}
