package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/internal/instance"

	"golang.org/x/term"
)

// place says where a command acts: on a server, or on a data folder in this
// process.
type place struct {
	Server string `help:"Act on the server at this address."`
	Token  string `help:"Token for the server."`
	Data   string `help:"Act on this data folder, in this process." type:"path"`
}

func (p place) check() error {
	switch {
	case p.Server != "" && p.Data != "":
		return errors.New("give either --server or --data, not both")
	case p.Server != "" && p.Token == "":
		return errors.New("--server needs --token; an administrator makes one with console token create")
	case p.Server == "" && p.Data == "":
		return errors.New("say where: --server URL --token T, or --data DIR")
	}
	return nil
}

// folder opens the data folder of the place.
func (p place) folder(ctx context.Context, drive bool, crash func(window, path string, pass int), logger *slog.Logger) (*instance.Instance, error) {
	if _, err := os.Stat(p.Data); err != nil {
		return nil, fmt.Errorf("there is no data folder %s; console serve or console demo makes one", p.Data)
	}
	i, err := openFolder(ctx, p.Data, drive, crash, logger)
	if err != nil {
		return nil, err
	}
	if !drive {
		return i, nil
	}
	if _, err := i.LoadDefinitions(ctx); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// person says as whom a decision is made on a data folder.
type person struct {
	As            string `help:"E-mail address of the person who acts, with --data."`
	PasswordStdin bool   `help:"Read the password from standard input." name:"password-stdin"`
}

// principal asks for the person's password and checks it.
func (p person) principal(ctx context.Context, i *instance.Instance, e env) (identity.Principal, error) {
	if p.As == "" {
		return identity.Principal{}, errors.New("say who you are: --as ADDRESS, and the password when asked or with --password-stdin")
	}
	password, err := p.password(e)
	if err != nil {
		return identity.Principal{}, err
	}
	return i.Desk.TerminalPrincipal(ctx, p.As, password)
}

// passwordBytesMax bounds what is read as a password.
const passwordBytesMax = 4096

func (p person) password(e env) (string, error) {
	if p.PasswordStdin {
		line, err := bufio.NewReader(io.LimitReader(e.in, passwordBytesMax)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the password: %w", err)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	f, ok := e.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return "", errors.New("there is no terminal to ask for the password; use --password-stdin")
	}
	fmt.Fprintf(e.err, "Password of %s: ", p.As)
	raw, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(e.err)
	return string(raw), err
}

// operator acts for commands on a data folder that ask for nobody's password:
// whoever holds the folder may operate it.
func operator() identity.Principal { return desk.Terminal() }
