package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// help writes kong's help and the examples of what was asked about: a
// command's own, or one of each command below a group. An example is the tag
// of that name on the command's field, and a test runs each through the
// parser.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	node := ctx.Selected()
	if node == nil {
		node = ctx.Model.Node
	}
	fmt.Fprintln(ctx.Stdout, "\nExample:")
	for _, line := range examplesOf(node) {
		fmt.Fprintln(ctx.Stdout, "  "+line)
	}
	return nil
}

// examplesOf is the example of a command, or the first below each command of
// a group.
func examplesOf(node *kong.Node) []string {
	if node.Tag != nil && node.Tag.Get("example") != "" {
		return []string{node.Tag.Get("example")}
	}
	var all []string
	for _, child := range node.Children {
		if below := examplesOf(child); len(below) > 0 {
			all = append(all, below[0])
		}
	}
	return all
}
