package main

import (
	"context"
	"fmt"
	"os"

	"countersign/internal/instance"
)

// restoreCmd puts a backup back.
type restoreCmd struct {
	Data string `help:"The data folder; no server may hold it." required:"" type:"path"`
	File string `arg:"" help:"The backup, as console backup wrote it." type:"path"`
}

// Help says what follows.
func (restoreCmd) Help() string {
	return "The backup's integrity and audit log are checked first. The database that was there is kept beside it under a dated name; killed at\n" +
		"any instant, the folder is as it was or restored. What happened after the backup is not in it: so every open run is blocked until a\n" +
		"person resumes it (console run resume ID, or --restored for all), what was sent is unknown, and every action of these runs is asked\n" +
		"about at its target before it is sent; where nobody can be asked, a person says. The keys must be in the folder."
}

func (c restoreCmd) Run(ctx context.Context, e env) error {
	if info, err := os.Stat(c.Data); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no data folder %s; make it, put the keys there from where you keep them, and restore into it", c.Data)
	}
	config, err := instance.LoadConfig(c.Data, "")
	if err != nil {
		return err
	}
	done, err := instance.Restore(ctx, instance.Restoring{Dir: c.Data, File: c.File, Config: config, Logger: quiet(e)})
	if err != nil {
		return err
	}
	if done.Replaced != "" {
		fmt.Fprintf(e.out, "the database that was there is kept as %s\n", done.Replaced)
	}
	fmt.Fprintf(e.out, "restored; %d open runs are blocked until somebody resumes them\n", done.Runs)
	if done.Runs > 0 {
		fmt.Fprintln(e.out, "next: console run list --status blocked, compare with the targets, then console run resume ID, or console run resume --restored")
	}
	return nil
}
