// Package static holds the styles, the script and the pictures of the pages,
// embedded, joined and named by their digest when the program starts.
//
// It guarantees that an address under /static/ with a digest in it never
// changes its content, so that it may be cached for ever, and that there is
// one style sheet and one script. It must not know what pages there are.
package static

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed css/*.css js/*.js img/*.svg
var files embed.FS

// digestChars are enough of a digest to tell versions of one file apart.
const digestChars = 12

// Prefix is the path below which Handler answers.
const Prefix = "/static/"

type asset struct {
	kind string
	body []byte
}

var (
	assets = map[string]asset{} // by path, filled once at start
	css    = add("app", ".css", "text/css; charset=utf-8", join("css"))
	js     = add("app", ".js", "text/javascript; charset=utf-8", join("js"))
	icon   = add("icon", ".svg", "image/svg+xml", read("img/icon.svg"))
)

// CSS is the address of the style sheet.
func CSS() string { return css }

// JS is the address of the script, a module.
func JS() string { return js }

// Icon is the address of the product's mark.
func Icon() string { return icon }

// Names are the addresses of all assets, for whoever writes pages to files.
func Names() []string { return []string{css, js, icon} }

// Bytes is the content at an address of Names.
func Bytes(name string) []byte { return assets[name].body }

// join puts the files of a folder together in the order of their names.
func join(dir string) []byte {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		panic("static: " + err.Error())
	}
	var b bytes.Buffer
	for _, e := range entries {
		b.Write(read(path.Join(dir, e.Name())))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func read(name string) []byte {
	body, err := files.ReadFile(name)
	if err != nil {
		panic("static: " + err.Error())
	}
	return body
}

func add(name, ext, kind string, body []byte) string {
	sum := sha256.Sum256(body)
	at := fmt.Sprintf("%s%s.%s%s", Prefix, name, hex.EncodeToString(sum[:])[:digestChars], ext)
	assets[at] = asset{kind, body}
	return at
}

// Handler serves the assets, and the mark also as /favicon.ico. An address
// with another digest is not found: it belongs to another version.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, lasting := r.URL.Path, true
		if name == "/favicon.ico" {
			name, lasting = icon, false
		}
		a, ok := assets[name]
		if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", a.kind)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		if lasting {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		if r.Method == http.MethodGet {
			_, _ = w.Write(a.body) // a reader that went away is no fault of ours
		}
	})
}

// Plain reports whether a path is served by Handler.
func Plain(p string) bool { return strings.HasPrefix(p, Prefix) || p == "/favicon.ico" }
