package gallery_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"countersign/web/gallery"
	"countersign/web/static"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

var (
	update = flag.Bool("update", false, "rewrite what is expected")
	out    = flag.String("out", "", "write the pages and their assets into this folder")
)

func render(t *testing.T, e gallery.Exhibit) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := e.Page.Render(t.Context(), &b); err != nil {
		t.Fatalf("%s: %v", e.Name, err)
	}
	return b.Bytes()
}

func parse(t *testing.T, e gallery.Exhibit) *html.Node {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(render(t, e)))
	if err != nil {
		t.Fatalf("%s: %v", e.Name, err)
	}
	return doc
}

var assetDigest = regexp.MustCompile(`(/static/[a-z]+)\.[0-9a-f]+\.`)

// TestGolden compares every page with what is expected: the whole document
// for the first, then only what the main region holds.
func TestGolden(t *testing.T) {
	for i, e := range gallery.Exhibits() {
		doc := parse(t, e)
		root := doc
		if i > 0 && e.Name != "inbox" {
			root = find(doc, func(n *html.Node) bool { return n.Data == "main" })
		}
		got := assetDigest.ReplaceAllString(outline(root), "$1.*.")
		file := filepath.Join("testdata", e.Name+".html")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v: run go test ./web/gallery -update and read what it wrote", err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e.Name, diff)
		}
	}
}

func TestGolden_HasNoFileWithoutAPage(t *testing.T) {
	known := map[string]bool{}
	for _, e := range gallery.Exhibits() {
		if known[e.Name+".html"] {
			t.Errorf("two pages are named %s", e.Name)
		}
		known[e.Name+".html"] = true
	}
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("testdata/%s belongs to no page", f.Name())
		}
	}
}

// TestFiles writes the pages where a browser can open them: serve the folder
// by any web server.
func TestFiles(t *testing.T) {
	if *out == "" {
		t.Skip("only with -out DIR")
	}
	files := map[string][]byte{}
	for _, name := range static.Names() {
		files[name] = static.Bytes(name)
	}
	var index strings.Builder
	for _, e := range gallery.Exhibits() {
		files[e.Name+".html"] = render(t, e)
		index.WriteString("<li><a href=\"" + e.Name + ".html\">" + e.Name + "</a>\n")
	}
	files["index.html"] = []byte("<!doctype html><title>Gallery</title><ul>\n" + index.String() + "</ul>\n")
	for name, body := range files {
		path := filepath.Join(*out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
