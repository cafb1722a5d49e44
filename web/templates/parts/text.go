package parts

import (
	"context"
	"io"
	"strings"

	"countersign/web/visible"

	"github.com/a-h/templ"
)

// Text shows a string that somebody else wrote: direction-isolated, every
// invisible, bidirectional and control character as an escape. It adds no
// space of its own.
func Text(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		return write(w, "<bdi>"+runs(visible.Inspect(s))+"</bdi>")
	})
}

// Block shows a longer text with its line breaks and spaces.
func Block(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		return write(w, `<pre class="block" dir="auto">`+"\n"+runs(visible.Inspect(s))+"</pre>")
	})
}

func runs(t visible.Text) string {
	var b strings.Builder
	for _, r := range t.Runs {
		if r.Escape {
			b.WriteString(`<span class="escape">` + templ.EscapeString(r.Text) + `</span>`)
			continue
		}
		b.WriteString(templ.EscapeString(r.Text))
	}
	return b.String()
}

// Hash shows "sha256:…" in groups of four that copy without the gaps. What is
// no such digest is shown as it is.
func Hash(digest string) templ.Component { return hash(digest, 0) }

// ShortHash shows the first groups of a digest.
func ShortHash(digest string) templ.Component { return hash(digest, shortGroups) }

const (
	groupChars  = 4
	shortGroups = 2
)

func hash(digest string, groups int) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		algorithm, hex, ok := strings.Cut(digest, ":")
		if !ok || visible.Plain(digest) != digest {
			return write(w, `<code class="id"><bdi>`+runs(visible.Inspect(digest))+`</bdi></code>`)
		}
		var b strings.Builder
		b.WriteString(`<code class="hash"`)
		if groups > 0 {
			b.WriteString(` title="` + templ.EscapeString(digest) + `"`)
		} else {
			b.WriteString(`><i>` + templ.EscapeString(algorithm) + `:</i`)
		}
		b.WriteString(`>`)
		for i := 0; i < len(hex) && (groups == 0 || i < groups*groupChars); i += groupChars {
			b.WriteString(`<span>` + templ.EscapeString(hex[i:min(i+groupChars, len(hex))]) + `</span>`)
		}
		b.WriteString(`</code>`)
		return write(w, b.String())
	})
}

func write(w io.Writer, s string) error {
	_, err := io.WriteString(w, s)
	return err
}
