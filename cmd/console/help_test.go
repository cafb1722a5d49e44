package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every command's --help ends with an example, and each example is a command
// line of that command that the parser takes.
func TestHelp_EveryCommandHasAnExampleThatParses(t *testing.T) {
	root := newParser(&cli{}, env{}, func(int) {}).Model.Node
	commands := 0
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		commands++
		wantExample(t, n)
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(root)
	if commands < 40 {
		t.Errorf("only %d commands and groups were walked", commands)
	}
}

func wantExample(t *testing.T, n *kong.Node) {
	t.Helper()
	var out, faults bytes.Buffer
	args := append(strings.Fields(n.FullPath())[1:], "--help")
	if status := run(args, env{out: &out, err: &faults}); status != exitOK {
		t.Errorf("console %s: status %d: %s", strings.Join(args, " "), status, faults.String())
		return
	}
	_, after, found := strings.Cut(out.String(), "\nExample:\n")
	lines := strings.Split(strings.TrimSpace(after), "\n")
	if !found || lines[0] == "" {
		t.Errorf("%s --help has no example: its command's field lacks the tag example", n.FullPath())
		return
	}
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if n.Type != kong.ApplicationNode && !strings.HasPrefix(line, n.FullPath()) {
			t.Errorf("%s --help has the example %q of another command", n.FullPath(), line)
		}
		if _, err := newParser(&cli{}, env{out: &out, err: &faults}, func(int) {}).Parse(words(t, line)[1:]); err != nil {
			t.Errorf("the example %q of %s does not parse: %v", line, n.FullPath(), err)
		}
	}
}

// words splits a command line as a shell does, as far as examples use it:
// blanks, and words in single quotes.
func words(t *testing.T, line string) (all []string) {
	t.Helper()
	parts := strings.Split(line, "'")
	if len(parts)%2 == 0 {
		t.Fatalf("the quotes of %q do not close", line)
	}
	for i, part := range parts {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}
