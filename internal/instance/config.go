package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"countersign/internal/strictyaml"
)

// ConfigFile is the name of the configuration inside the data folder.
const ConfigFile = "console.yaml"

// secretBytesMax bounds one secret read from a file.
const secretBytesMax = 64 << 10

// Config is what the operator decides about one data folder. Every field has
// a default, so an empty folder works.
type Config struct {
	Listen  string // host:port of the console
	BaseURL string // the address people use; links and the Host check come from it
	Proxies []netip.Prefix

	Workflows, Tools, Policies string            // folders, absolute
	Values                     map[string]string // what ${config.NAME} means in tools
	Secrets                    map[string]Secret // what ${secret.NAME} means when a request is sent
	Allow                      []netip.Prefix    // addresses tools may reach besides public ones

	Metrics string // host:port of the listener for /metrics; empty: none
	OTLP    string // address of the collector of traces; empty: as the environment says, else none

	file  string          // that was read; empty for none
	given map[string]bool // keys that stand in it
}

// Secret says where a secret is read from, anew for each send. Exactly one
// field is set.
type Secret struct {
	Env  string
	File string
}

// LoadConfig reads the configuration file of the data folder dir, or path if
// that is not empty. No file means the defaults. The error is a
// strictyaml.Problems with every fault and its place.
func LoadConfig(dir, path string) (Config, error) {
	c := defaults(dir)
	named := path != ""
	if !named {
		path = filepath.Join(dir, ConfigFile)
	}
	src, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read the configuration: %w", err)
	}
	root, err := strictyaml.Parse(path, src)
	if err != nil {
		return c, err
	}
	base, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return c, err
	}
	var faults strictyaml.Problems
	r := configReader{base: base, faults: &faults}
	c.file = path
	r.read(root, &c)
	if len(faults) > 0 {
		return c, faults
	}
	return c, nil
}

func defaults(dir string) Config {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return Config{
		Listen:    "127.0.0.1:8080",
		Workflows: filepath.Join(dir, "workflows"),
		Tools:     filepath.Join(dir, "tools"),
		Policies:  filepath.Join(dir, "policies"),
		Values:    map[string]string{},
		Secrets:   map[string]Secret{},
	}
}

type configReader struct {
	base   string
	faults *strictyaml.Problems
}

func (r configReader) fault(n *strictyaml.Node, format string, args ...any) {
	*r.faults = append(*r.faults, strictyaml.Problem{Pos: n.Pos, Message: fmt.Sprintf(format, args...)})
}

func (r configReader) read(root *strictyaml.Node, c *Config) {
	m := root.Map(r.faults, "format", "listen", "base_url", "proxies", "workflows", "tools", "policies", "config", "secrets", "allow", "metrics", "otlp")
	if m == nil {
		return
	}
	c.given = map[string]bool{}
	for _, key := range m.Keys() {
		c.given[key] = true
	}
	if n := m.Need("format"); n != nil && n.Int(r.faults) != 1 {
		r.fault(n, "this program reads format 1")
	}
	if n := m.Get("listen"); n != nil {
		c.Listen = n.String(r.faults)
	}
	if n := m.Get("base_url"); n != nil {
		c.BaseURL = r.baseURL(n)
	}
	for key, into := range map[string]*string{"workflows": &c.Workflows, "tools": &c.Tools, "policies": &c.Policies} {
		if n := m.Get(key); n != nil {
			*into = r.path(n.String(r.faults))
		}
	}
	c.Proxies = append(c.Proxies, r.prefixes(m.Get("proxies"))...)
	c.Allow = append(c.Allow, r.prefixes(m.Get("allow"))...)
	r.values(m.Get("config"), c.Values)
	r.secrets(m.Get("secrets"), c.Secrets)
	c.Metrics = r.one(m.Get("metrics"), "listen", hostPort)
	c.OTLP = r.one(m.Get("otlp"), "endpoint", webAddress)
}

// one reads a map of one needed text, which check may find fault with.
func (r configReader) one(n *strictyaml.Node, key string, check func(string) string) string {
	if n == nil {
		return ""
	}
	m := n.Map(r.faults, key)
	if m == nil {
		return ""
	}
	v := m.Need(key)
	if v == nil {
		return ""
	}
	s := v.String(r.faults)
	if why := check(s); why != "" {
		r.fault(v, "%s %s", key, why)
	}
	return s
}

func hostPort(s string) string {
	if _, port, err := net.SplitHostPort(s); err != nil || port == "" {
		return "must be like 127.0.0.1:9090"
	}
	return ""
}

func webAddress(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return "must be like http://127.0.0.1:4318, without user or query; secrets belong into OTEL_EXPORTER_OTLP_HEADERS"
	}
	return ""
}

func (r configReader) baseURL(n *strictyaml.Node) string {
	s := n.String(r.faults)
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" {
		r.fault(n, "base_url must be like https://console.example.org, without user or query")
		return ""
	}
	return strings.TrimSuffix(s, "/")
}

// path resolves what begins with ./ or ../ against the configuration's folder.
func (r configReader) path(s string) string {
	if s == "." || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") {
		return filepath.Join(r.base, s)
	}
	return s
}

func (r configReader) prefixes(n *strictyaml.Node) []netip.Prefix {
	if n == nil {
		return nil
	}
	var out []netip.Prefix
	for _, item := range n.Seq(r.faults) {
		s := item.String(r.faults)
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			r.fault(item, "%q is neither an address nor a range like 10.0.0.0/8", s)
			continue
		}
		out = append(out, p)
	}
	return out
}

func (r configReader) values(n *strictyaml.Node, into map[string]string) {
	if n == nil {
		return
	}
	m := n.Map(r.faults)
	if m == nil {
		return
	}
	for _, key := range m.Keys() {
		into[key] = r.path(m.Get(key).String(r.faults))
	}
}

func (r configReader) secrets(n *strictyaml.Node, into map[string]Secret) {
	if n == nil {
		return
	}
	m := n.Map(r.faults)
	if m == nil {
		return
	}
	for _, key := range m.Keys() {
		node := m.Get(key)
		s := node.Map(r.faults, "env", "file")
		if s == nil {
			continue
		}
		var secret Secret
		if e := s.Get("env"); e != nil {
			secret.Env = e.String(r.faults)
		}
		if f := s.Get("file"); f != nil {
			secret.File = r.path(f.String(r.faults))
		}
		if (secret.Env == "") == (secret.File == "") {
			r.fault(node, "the secret %s needs exactly one of env and file; secrets are never written here", key)
			continue
		}
		into[key] = secret
	}
}

// Secret reads the named secret. An unknown or empty one is an error that
// names it and never its value.
func (c Config) Secret(_ context.Context, name string) (string, error) {
	s, ok := c.Secrets[name]
	if !ok {
		return "", fmt.Errorf("the secret %s is not configured; known are %s", name, strings.Join(c.secretNames(), ", "))
	}
	if s.Env != "" {
		if v := os.Getenv(s.Env); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("the secret %s is empty: the environment variable %s is not set", name, s.Env)
	}
	info, err := os.Stat(s.File)
	if err != nil {
		return "", fmt.Errorf("the secret %s cannot be read: %w", name, err)
	}
	if info.Size() > secretBytesMax {
		return "", fmt.Errorf("the secret %s is larger than %d bytes", name, secretBytesMax)
	}
	v, err := os.ReadFile(s.File)
	if err != nil {
		return "", fmt.Errorf("the secret %s cannot be read: %w", name, err)
	}
	return strings.TrimRight(string(v), "\r\n"), nil
}

func (c Config) secretNames() []string {
	return slices.Sorted(maps.Keys(c.Secrets))
}

// Value is one effective setting and where it is from.
type Value struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Effective lists the settings; of secrets only where they are read from.
func (c Config) Effective() []Value {
	out := []Value{
		{"listen", c.Listen, c.from("listen")}, {"base_url", c.BaseURL, c.from("base_url")},
		{"workflows", c.Workflows, c.from("workflows")}, {"tools", c.Tools, c.from("tools")}, {"policies", c.Policies, c.from("policies")},
		{"allow", join(c.Allow), c.from("allow")}, {"proxies", join(c.Proxies), c.from("proxies")},
		{"metrics.listen", c.Metrics, c.from("metrics")}, {"otlp.endpoint", c.OTLP, c.from("otlp")},
	}
	for _, name := range slices.Sorted(maps.Keys(c.Values)) {
		out = append(out, Value{"config." + name, c.Values[name], c.from("config")})
	}
	for _, name := range c.secretNames() {
		s := c.Secrets[name]
		from := "environment variable " + s.Env
		if s.File != "" {
			from = "file " + s.File
		}
		out = append(out, Value{"secret." + name, "hidden", from})
	}
	return out
}

func (c Config) from(key string) string {
	if c.given[key] {
		return c.file
	}
	return "default"
}

func join(prefixes []netip.Prefix) string {
	words := make([]string, len(prefixes))
	for i, p := range prefixes {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}
