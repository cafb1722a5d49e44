package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"countersign/internal/audit"
	"countersign/internal/definitions"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/instance"
	"countersign/internal/strictyaml"
	"countersign/internal/vault"
)

// folderOnly is a command that acts on a data folder, beside a running server
// if there is one.
type folderOnly struct {
	Data string `help:"The data folder." required:"" type:"path"`
}

func (f folderOnly) open(ctx context.Context, e env) (*instance.Instance, error) {
	return place{Data: f.Data}.folder(ctx, false, nil, quiet(e))
}

// userCmd is people.
type userCmd struct {
	Add     userAddCmd     `cmd:"" help:"Add somebody." example:"console user add ana@example.org --name Ana --role approver --data ./data --password-stdin"`
	List    userListCmd    `cmd:"" help:"List everybody." example:"console user list --data ./data"`
	Disable userDisableCmd `cmd:"" help:"Disable somebody: their sessions and tokens end." example:"console user disable ana@example.org --data ./data"`
	Enable  userEnableCmd  `cmd:"" help:"Enable somebody again." example:"console user enable ana@example.org --data ./data"`
	Role    userRoleCmd    `cmd:"" help:"Replace somebody's roles." example:"console user role ana@example.org approver finance --data ./data"`
}

type userAddCmd struct {
	folderOnly
	Email         string   `arg:"" help:"E-mail address."`
	Name          string   `help:"Name." required:""`
	Role          []string `help:"Role; may be repeated: ${roles}, or one that a policy or question names."`
	PasswordStdin bool     `help:"Read the password from standard input." name:"password-stdin"`
}

func (c userAddCmd) Run(ctx context.Context, e env) error {
	i, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	password, err := person{As: c.Email, PasswordStdin: c.PasswordStdin}.password(e)
	if err != nil {
		return err
	}
	p, err := i.Desk.AddPerson(ctx, operator(), identity.NewPerson{Email: c.Email, Name: c.Name, Password: password, Roles: c.Role})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s  %s  %s\n", p.ID, p.Email, strings.Join(p.Roles, " "))
	return err
}

type userListCmd struct {
	folderOnly
	JSON bool `help:"As JSON."`
}

func (c userListCmd) Run(ctx context.Context, e env) error {
	i, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	people, err := i.Desk.People(ctx, operator())
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, people)
	}
	return table(e.out, "PERSON\tEMAIL\tNAME\tACTIVE\tROLES", people, func(p identity.Person) string {
		return fmt.Sprintf("%s\t%s\t%s\t%v\t%s", p.ID, p.Email, p.Name, p.Active, strings.Join(p.Roles, " "))
	})
}

type userDisableCmd struct {
	folderOnly
	Email string `arg:"" help:"E-mail address."`
}

func (c userDisableCmd) Run(ctx context.Context, e env) error {
	return c.setActive(ctx, e, c.Email, false)
}

type userEnableCmd struct {
	folderOnly
	Email string `arg:"" help:"E-mail address."`
}

func (c userEnableCmd) Run(ctx context.Context, e env) error {
	return c.setActive(ctx, e, c.Email, true)
}

func (f folderOnly) setActive(ctx context.Context, e env, email string, active bool) error {
	i, err := f.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	p, err := i.Desk.PersonByEmail(ctx, operator(), email)
	if err != nil {
		return err
	}
	return i.Desk.SetActive(ctx, operator(), p.ID, active)
}

type userRoleCmd struct {
	folderOnly
	Email string   `arg:"" help:"E-mail address."`
	Roles []string `arg:"" optional:"" help:"The roles; none takes all away."`
}

func (c userRoleCmd) Run(ctx context.Context, e env) error {
	i, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	p, err := i.Desk.PersonByEmail(ctx, operator(), c.Email)
	if err != nil {
		return err
	}
	return i.Desk.SetRoles(ctx, operator(), p.ID, c.Roles)
}

// tokenCmd is access tokens.
type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token; its secret is shown this once." example:"console token create bot --owner ana@example.org --scope actions:propose --data ./data"`
	List   tokenListCmd   `cmd:"" help:"List tokens." example:"console token list --data ./data"`
	Revoke tokenRevokeCmd `cmd:"" help:"End a token." example:"console token revoke tok_… --data ./data"`
}

type tokenCreateCmd struct {
	folderOnly
	Name     string        `arg:"" help:"What it is for."`
	Owner    string        `help:"E-mail address of its owner." required:""`
	Scope    []string      `help:"Scope; may be repeated: ${scopes}." required:""`
	Personal bool          `help:"Acts as its owner, and may decide for a day at most."`
	Life     time.Duration `help:"How long it works." default:"24h"`
}

func (c tokenCreateCmd) Run(ctx context.Context, e env) error {
	i, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	owner, err := i.Desk.PersonByEmail(ctx, operator(), c.Owner)
	if err != nil {
		return err
	}
	secret, info, err := i.Desk.CreateToken(ctx, operator(), identity.NewToken{Owner: owner.ID, Name: c.Name, Scopes: c.Scope, Personal: c.Personal, Life: c.Life})
	if err != nil {
		return err
	}
	fmt.Fprintf(e.err, "%s, until %s; the secret is shown only now:\n", info.ID, info.Expires.Format("2006-01-02 15:04:05 MST"))
	_, err = fmt.Fprintln(e.out, secret)
	return err
}

type tokenListCmd struct {
	folderOnly
	JSON bool `help:"As JSON."`
}

func (c tokenListCmd) Run(ctx context.Context, e env) error {
	i, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	tokens, err := i.Desk.Tokens(ctx, operator(), true)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.out, tokens)
	}
	return table(e.out, "TOKEN\tNAME\tBEGINS\tSCOPES\tEXPIRES\tREVOKED", tokens, func(t identity.TokenInfo) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%v", t.ID, t.Name, t.Shown, strings.Join(t.Scopes, " "), t.Expires.Format("2006-01-02 15:04"), !t.Revoked.IsZero())
	})
}

type tokenRevokeCmd struct {
	folderOnly
	ID string `arg:"" help:"Token id."`
}

func (c tokenRevokeCmd) Run(ctx context.Context, e env) error {
	i, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	return i.Desk.RevokeToken(ctx, operator(), id.Token(c.ID))
}

// checkCmd checks definitions without installing them.
type checkCmd struct {
	Dir string `arg:"" optional:"" help:"Folder with workflows, tools and policies." default:"." type:"path"`
}

func (c checkCmd) Run(ctx context.Context, e env) error {
	var faults strictyaml.Problems
	b, err := definitions.Read(definitions.Below(os.DirFS(c.Dir)))
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	if b != nil {
		for _, w := range b.Warnings {
			fmt.Fprintf(e.err, "warning: %s\n", printable(w))
		}
		fmt.Fprintf(e.out, "%d workflows, %d tools, %d policies: no errors\n", len(b.Workflows), len(b.Tools), len(b.Policies))
	}
	if _, statErr := os.Stat(filepath.Join(c.Dir, instance.DatabaseFile)); statErr == nil {
		i, openErr := folderOnly{Data: c.Dir}.open(ctx, e)
		if openErr != nil {
			return errors.Join(err, openErr)
		}
		defer i.Close()
		if checkErr := i.Desk.Check(ctx); checkErr != nil {
			return errors.Join(err, checkErr)
		}
		fmt.Fprintln(e.out, "database: consistent")
	}
	return err
}

// backupCmd copies the database.
type backupCmd struct {
	folderOnly
	File string `arg:"" help:"File to write; it must not exist." type:"path"`
}

func (c backupCmd) Run(ctx context.Context, e env) error {
	i, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer i.Close()
	if err := i.DB.Backup(ctx, c.File); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s written. It does not hold the keys %s and %s; keep them apart.\n", c.File, filepath.Join(c.Data, audit.KeyFile), filepath.Join(c.Data, vault.KeyFile))
	return err
}

// migrateCmd brings a folder to this program's schema.
type migrateCmd struct {
	folderOnly
}

func (c migrateCmd) Run(ctx context.Context, e env) error {
	i, err := openFolder(ctx, c.Data, true, nil, quiet(e)) // opening migrates
	if err != nil {
		return err
	}
	defer i.Close()
	_, err = fmt.Fprintln(e.out, "the database has this program's schema")
	return err
}

// configCmd prints the effective configuration.
type configCmd struct {
	Data   string `help:"The data folder." required:"" type:"path"`
	Config string `help:"Configuration file, in place of console.yaml in the data folder." type:"path"`
	JSON   bool   `help:"As JSON."`
}

func (c configCmd) Run(e env) error {
	config, err := instance.LoadConfig(c.Data, c.Config)
	if err != nil {
		return err
	}
	values := config.Effective()
	if c.JSON {
		return printJSON(e.out, values)
	}
	return table(e.out, "NAME\tVALUE\tFROM", values, func(v instance.Value) string { return v.Name + "\t" + v.Value + "\t" + v.From })
}
