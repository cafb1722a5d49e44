package tools

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/expr"
)

// execCode is a command template ready to be resolved.
type execCode struct {
	spec  *execSpec
	argv  []*expr.Text // nil: the empty string
	env   map[string]*expr.Text
	dir   *expr.Text
	judge judgeCode
}

// argvMax bounds the argument list.
const argvMax = 200

var stdouts = []string{"json", "text"}

func (b *builder) exec(pointer string, e *execSpec, write bool, extra ...string) *execCode {
	in := slices.Concat(inNames, extra)
	b.limit(pointer+"/timeout", e.Timeout, execTimeoutMax)
	b.oneOf(pointer+"/stdout", e.Stdout, stdouts)
	c := &execCode{spec: e, env: map[string]*expr.Text{}}
	if len(e.Argv) == 0 || len(e.Argv) > argvMax {
		b.fault(pointer+"/argv", 0, "argv is a list of 1 to %d strings: the program and its arguments", argvMax)
		return c
	}
	for i, src := range e.Argv {
		c.argv = append(c.argv, b.text(pointer+"/argv/"+strconv.Itoa(i), src, in...))
	}
	b.program(pointer, e, c.argv)
	for name, src := range e.Env {
		at := pointer + "/env/" + escape(name)
		b.envName(at, name)
		c.env[name] = b.text(at, src, slices.Concat(in, []string{"secret"})...)
	}
	c.dir = b.text(pointer+"/dir", e.Dir, "config")
	if e.Dir != "" && e.Dir[0] != '/' && !configStart.MatchString(e.Dir) {
		b.fault(pointer+"/dir", 0, "dir begins with / or with ${config.NAME}")
	}
	c.judge = b.judge(pointer, e.judgeSpec, write, slices.Concat(execNames, extra))
	return c
}

// shells take a program as text; an expression there would be a hole.
var (
	shells     = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox", "env", "xargs", "eval", "cmd", "powershell", "pwsh"}
	scriptFlag = regexp.MustCompile(`^-[A-Za-z]*c$`)
)

// program checks what is run: literal or whole from config, and no shell text
// made from parameters.
func (b *builder) program(pointer string, e *execSpec, argv []*expr.Text) {
	first := e.Argv[0]
	if m := configStart.FindString(first); m != first && (strings.Contains(first, "${") || first == "") {
		b.fault(pointer+"/argv/0", 0, "the program is written out or is one ${config.NAME}")
		return
	}
	if strings.Contains(first, "/") && first[0] != '/' && first[0] != '$' {
		b.fault(pointer+"/argv/0", 0, "the program is an absolute path or a bare name")
	}
	if !slices.Contains(shells, path.Base(first)) {
		return
	}
	for i := 2; i < len(e.Argv); i++ {
		if scriptFlag.MatchString(e.Argv[i-1]) && argv[i] != nil && !literal(argv[i]) {
			b.fault(pointer+"/argv/"+strconv.Itoa(i), 0, "an expression cannot be part of a shell script; pass the value as an argument of its own and use \"$1\"")
		}
	}
}

func literal(t *expr.Text) bool {
	return !slices.ContainsFunc(t.Parts, func(p expr.Part) bool { return p.Kind != expr.Literal })
}

var envForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// envRefused change what program runs, what code it loads or how a shell reads
// its script; a tool cannot set them.
var (
	envRefused = []string{"PATH", "ENV", "BASH_ENV", "IFS", "CDPATH", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "GLOBIGNORE",
		"NODE_OPTIONS", "PERL5OPT", "PERL5LIB", "PERL5DB", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "RUBYOPT", "RUBYLIB",
		"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "GCONV_PATH", "LOCPATH", "HOSTALIASES", "NLSPATH", "TRACEPARENT"}
	envRefusedPrefixes = []string{"LD_", "DYLD_", "BASH_FUNC", "COUNTERSIGN_", "GIT_CONFIG", "GIT_EXEC", "GIT_SSH"}
)

func (b *builder) envName(pointer, name string) {
	upper := strings.ToUpper(name)
	begins := func(prefix string) bool { return strings.HasPrefix(upper, prefix) }
	switch {
	case !envForm.MatchString(name):
		b.fault(pointer, 0, "%q cannot be the name of an environment variable", name)
	case slices.Contains(envRefused, upper), slices.ContainsFunc(envRefusedPrefixes, begins):
		b.fault(pointer, 0, "the variable %s changes which code runs; a tool cannot set it", name)
	}
}
