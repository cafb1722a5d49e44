package visible

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// Host is the host of an address inside a text, in the form that is dialled
// and in the form that is read.
type Host struct {
	ASCII   string // what is dialled: xn--pple-43d.test
	Unicode string // what is read: аpple.test; empty when it is the same
	Warning string // what is suspicious about it; may be empty
}

const hostsMax = 6 // hosts that are named for one text

// hostBytesMax is the length of the longest host name (RFC 1035); converting
// takes quadratic time, so what is longer is not converted.
const hostBytesMax = 253

var address = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]{1,20}:/{2}[^\s<>"'` + "`" + `⟦⟧]+`)

// hosts finds the addresses in s and names each host once.
func hosts(s string) []Host {
	if !strings.Contains(s, "://") {
		return nil
	}
	var out []Host
	for _, raw := range address.FindAllString(s, 4*hostsMax) {
		h, ok := host(raw)
		if ok && !slices.Contains(out, h) && len(out) < hostsMax {
			out = append(out, h)
		}
	}
	return out
}

func host(raw string) (Host, bool) {
	u, err := url.Parse(raw)
	if err != nil {
		return Host{ASCII: raw, Warning: "this address cannot be read"}, true
	}
	name := u.Hostname()
	if name == "" {
		return Host{}, false
	}
	if len(name) > hostBytesMax {
		return Host{ASCII: name, Warning: "this is longer than a host can be"}, true
	}
	h := Host{ASCII: name}
	var warnings []string
	if asc, err := idna.Punycode.ToASCII(strings.ToLower(name)); err == nil {
		h.ASCII = asc
	}
	if uni, err := idna.Punycode.ToUnicode(h.ASCII); err == nil && uni != h.ASCII {
		h.Unicode = Plain(uni)
		warnings = append(warnings, "not plain letters: compare both forms")
		if mixtures(uni) != nil {
			warnings = append(warnings, mixtures(uni)[0])
		}
	}
	if u.User != nil {
		warnings = append(warnings, "the part before @ ("+Plain(u.User.Username())+") is not the host")
	}
	h.Warning = strings.Join(warnings, "; ")
	return h, true
}

// Plain writes out the escapes of a short text: for places that take a
// plain string, such as a title.
func Plain(s string) string {
	var b strings.Builder
	c := context{}
	for i, r := range s {
		size := len(string(r))
		if r == '\uFFFD' && !strings.HasPrefix(s[i:], "\uFFFD") {
			size = 1
		}
		if r == '\n' || r == '\t' || c.judge(r, size) != fine {
			b.WriteString(escape(r, s[i:i+size]))
			continue
		}
		b.WriteString(s[i : i+size])
	}
	return b.String()
}
