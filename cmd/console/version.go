package main

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

type versionCmd struct {
	JSON bool `help:"As JSON."`
}

// build is what the Go toolchain recorded of this program.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

func thisBuild() build {
	b := build{Version: "devel", Commit: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if v := info.Main.Version; v != "(devel)" {
		b.Version = cmp.Or(v, b.Version)
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

func (c versionCmd) Run(e env) error {
	b := thisBuild()
	if c.JSON {
		return printJSON(e.out, b)
	}
	_, err := fmt.Fprintf(e.out, "countersign %s (%s, %s)\n", b.Version, b.Commit, b.Go)
	return err
}
