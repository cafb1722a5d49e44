package parts

import (
	"context"
	"fmt"
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

// Path shows a foreign text such as steps.order.output that may be broken
// after its dots.
func Path(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		return write(w, "<bdi>"+strings.ReplaceAll(runs(visible.Inspect(s)), ".", ".<wbr>")+"</bdi>")
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

// Line is a sentence of strings, which are ours, and components, with no
// space but the written ones.
func Line(pieces ...any) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		for _, p := range pieces {
			var err error
			if c, ok := p.(templ.Component); ok {
				err = c.Render(ctx, w)
			} else {
				err = write(w, templ.EscapeString(fmt.Sprint(p)))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Strong shows a foreign text emphasised.
func Strong(s string) templ.Component {
	return Line(templ.Raw("<strong>"), Text(s), templ.Raw("</strong>"))
}

// Code shows a foreign text as an id or a command.
func Code(s string) templ.Component {
	return Line(templ.Raw(`<code class="id">`), Text(s), templ.Raw("</code>"))
}

// Soft shows components or strings of ours that matter less.
func Soft(pieces ...any) templ.Component {
	return Line(templ.Raw(`<span class="soft">`), Line(pieces...), templ.Raw("</span>"))
}

// Names lists persons, each isolated.
func Names(names []string) templ.Component {
	var pieces []any
	for i, n := range names {
		if i > 0 {
			pieces = append(pieces, ", ")
		}
		pieces = append(pieces, Text(n))
	}
	return Line(pieces...)
}
