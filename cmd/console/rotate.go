package main

import (
	"context"
	"fmt"
	"path/filepath"

	"countersign/internal/audit"
)

// auditRotateCmd replaces the key that signs the log. It takes the folder's
// lock: a server that runs would go on with the old key.
type auditRotateCmd struct {
	Data string `help:"The data folder; no server may hold it." required:"" type:"path"`
}

func (c auditRotateCmd) Run(ctx context.Context, e env) error {
	i, err := openFolder(ctx, c.Data, true, nil, quiet(e))
	if err != nil {
		return err
	}
	defer i.Close()
	public, err := i.Desk.RotateKey(ctx, operator())
	if err != nil {
		return err
	}
	fmt.Fprintf(e.err, "the log is signed by a new key; give its public half to whoever checks receipts: %s\n", filepath.Join(c.Data, audit.PublicFile))
	_, err = fmt.Fprintln(e.out, public)
	return err
}
