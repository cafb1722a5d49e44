package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"countersign/internal/audit"
	"countersign/internal/audit/receipt"
	"countersign/internal/desk"
	"countersign/internal/instance"
)

// auditCmd is proving what happened.
type auditCmd struct {
	Verify       auditVerifyCmd  `cmd:"" help:"Recompute the whole log and compare it with every signed head." example:"console audit verify --data ./data"`
	Export       auditExportCmd  `cmd:"" help:"Write the log as JSON Lines or CSV." example:"console audit export --format csv --data ./data"`
	Receipt      auditReceiptCmd `cmd:"" help:"Write the file that proves one approval." example:"console audit receipt apr_… --out receipt.json --data ./data"`
	CheckReceipt checkReceiptCmd `cmd:"" name:"check-receipt" help:"Check a receipt with the public key alone, anywhere." example:"console audit check-receipt receipt.json --key audit.pub"`
	CheckBundle  checkBundleCmd  `cmd:"" name:"check-bundle" help:"Check the bundle of a run, and each receipt in it, with the public key alone, anywhere." example:"console audit check-bundle run.jsonl --key audit.pub"`
	Head         auditHeadCmd    `cmd:"" help:"Print the last signed head, to be copied away." example:"console audit head --data ./data"`
	Rotate       auditRotateCmd  `cmd:"" help:"Replace the signing key; the log is signed by both keys where it changes." example:"console audit rotate --data ./data"`
}

type auditVerifyCmd struct {
	folderOnly
	Head string `help:"A file of heads that was copied away, in place of audit.head in the data folder." type:"path"`
	JSON bool   `help:"As JSON."`
}

func (c auditVerifyCmd) Run(ctx context.Context, e env) error {
	i, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	report, err := c.verify(ctx, i)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := printJSON(e.out, report); err != nil {
			return err
		}
	} else {
		for _, t := range report.Tenants {
			fmt.Fprintf(e.out, "%q: %d entries under %d signed heads\n", t.Tenant, t.Entries, t.Heads)
		}
		for _, f := range report.Findings {
			fmt.Fprintf(e.err, "%q, entry %d: %s\n", f.Tenant, f.Seq, printable(f.What))
		}
	}
	if !report.OK {
		return fmt.Errorf("the log does NOT verify: %d findings; keep the folder as it is and compare it with a backup", len(report.Findings))
	}
	_, err = fmt.Fprintln(e.err, "the log verifies")
	return err
}

func (c auditVerifyCmd) verify(ctx context.Context, i *instance.Instance) (audit.Report, error) {
	if c.Head == "" {
		return i.Log.VerifyFolder(ctx)
	}
	heads, err := audit.ReadHeadFile(c.Head)
	if err != nil {
		return audit.Report{}, fmt.Errorf("read the copied heads: %w", err)
	}
	if len(heads) == 0 {
		return audit.Report{}, fmt.Errorf("there are no heads in %s", c.Head)
	}
	return i.Log.Verify(ctx, heads)
}

type auditExportCmd struct {
	folderOnly
	Format string `help:"Which form." enum:"jsonl,csv" default:"jsonl"`
}

func (c auditExportCmd) Run(ctx context.Context, e env) error {
	i, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	return i.Desk.Export(ctx, operator(), c.Format, e.out)
}

type auditReceiptCmd struct {
	place
	ID  string `arg:"" help:"Approval id."`
	Out string `help:"File to write, in place of standard output." type:"path"`
}

func (c auditReceiptCmd) Run(ctx context.Context, e env) error {
	var file []byte
	err := c.beside(ctx, e,
		func(h *client) error {
			return h.call(ctx, "GET", path.Join("/audit/receipt", escape(c.ID)), nil, &file)
		},
		func(i *instance.Instance) (err error) {
			file, err = i.Desk.Receipt(ctx, operator(), c.ID)
			return err
		})
	if err != nil {
		return err
	}
	if c.Out != "" {
		return os.WriteFile(c.Out, file, 0o644)
	}
	_, err = e.out.Write(file)
	return err
}

type checkReceiptCmd struct {
	File string `arg:"" help:"The receipt." type:"path"`
	Key  string `help:"The public key, or a file of it such as audit.pub." required:""`
}

func (c checkReceiptCmd) Run(e env) error {
	raw, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	key, err := publicKey(c.Key)
	if err != nil {
		return err
	}
	report, err := receipt.Check(raw, key)
	switch {
	case errors.Is(err, receipt.ErrKey):
		return fmt.Errorf("the receipt was not checked: %w; give the file audit.pub of the console, or what it holds", err)
	case err != nil:
		return fmt.Errorf("the receipt does NOT hold: %w", err)
	}
	fmt.Fprintf(e.out, "%s holds: log %s, %d entries\n", report.Approval, report.Origin, report.Size)
	for _, fact := range report.Facts {
		fmt.Fprintf(e.out, "  %s\n", printable(fact))
	}
	return nil
}

// publicKey is what --key says, or the content of the file it names.
func publicKey(given string) (string, error) {
	text, err := os.ReadFile(given)
	if err == nil {
		return string(text), nil
	}
	if !strings.Contains(given, "+") { // a public key is name+hash+bytes
		return "", fmt.Errorf("--key is neither a public key nor a file that can be read: %w", err)
	}
	return given, nil
}

type auditHeadCmd struct {
	place
	JSON bool `help:"As JSON."`
}

func (c auditHeadCmd) Run(ctx context.Context, e env) error {
	var head desk.HeadView
	err := c.beside(ctx, e,
		func(h *client) error { return h.call(ctx, "GET", "/audit/head", nil, &head) },
		func(i *instance.Instance) (err error) {
			head, err = i.Desk.Head(ctx, operator())
			return err
		})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, head)
	}
	_, err = fmt.Fprintf(e.out, "%s\n%s\n", head.Note, head.PublicKey)
	return err
}
