package main

import (
	"context"
	"fmt"
	"path/filepath"

	"countersign/internal/vault"
)

// vaultCmd is the keys of sensitive values.
type vaultCmd struct {
	Rotate vaultRotateCmd `cmd:"" help:"Replace the key file and the keys below it; the values stay as they are." example:"console vault rotate --data ./data"`
}

// vaultRotateCmd takes the folder's lock: a server that runs would go on with
// the old key.
type vaultRotateCmd struct {
	Data string `help:"The data folder; no server may hold it." required:"" type:"path"`
}

func (c vaultRotateCmd) Run(ctx context.Context, e env) error {
	i, err := openFolder(ctx, c.Data, true, nil, quiet(e))
	if err != nil {
		return err
	}
	defer i.Close()
	runs, err := i.Desk.RotateVault(ctx, operator())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s is new; the keys of %d runs are wrapped anew. Keep a copy of it apart, and the old one as long as backups that were made before.\n",
		filepath.Join(c.Data, vault.KeyFile), runs)
	return err
}
