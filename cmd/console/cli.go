package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"countersign/internal/identity"
	"countersign/internal/strictyaml"

	"github.com/alecthomas/kong"
)

// Exit statuses. 75 is sysexits' EX_TEMPFAIL: the rehearsed crash.
const (
	exitOK      = 0
	exitFailed  = 1 // something went wrong; the last line says what to do
	exitUsage   = 2
	exitEnded   = 3 // the run ended rejected, expired, failed or cancelled
	exitBlocked = 4 // the run is blocked: a person must act
	exitCrash   = 75
)

// cli is the whole command line, one field a command.
type cli struct {
	Demo     demoCmd     `cmd:"" help:"Everything ready to try: sample workflows, people, an agent and stand-in targets, on this machine only." example:"console demo"`
	Serve    serveCmd    `cmd:"" help:"The console for one data folder." example:"console serve --data ./data --listen 127.0.0.1:8080"`
	StandIns standInsCmd `cmd:"" name:"stand-ins" help:"Only the demo's stand-in targets and planner, with their own durable ledger."`
	Run      runCmd      `cmd:"" help:"Start, look at, resume and cancel runs."`
	Approval approvalCmd `cmd:"" help:"Decide from a terminal."`
	Effect   effectCmd   `cmd:"" help:"Effects whose outcome nobody knows."`
	Drill    drillCmd    `cmd:"" help:"Rehearse a workflow with a crash at every instant, its targets replaced." example:"console drill weekly-report --data ./data"`
	Check    checkCmd    `cmd:"" help:"Every error in the definitions of a folder at once, with its place." example:"console check ./data"`
	User     userCmd     `cmd:"" help:"People of a data folder."`
	Token    tokenCmd    `cmd:"" help:"Access tokens of a data folder."`
	Audit    auditCmd    `cmd:"" help:"Verify, export and prove the audit log."`
	Vault    vaultCmd    `cmd:"" help:"The keys that sensitive values are encrypted under."`
	Clock    clockCmd    `cmd:"" help:"The time by which the console decides."`
	Backup   backupCmd   `cmd:"" help:"Copy the database of a running or stopped console into one file." example:"console backup ./console-2026-12-01.db --data ./data"`
	Restore  restoreCmd  `cmd:"" help:"Put a backup back in place of a stopped console's database." example:"console restore ./console-2026-12-01.db --data ./data"`
	Migrate  migrateCmd  `cmd:"" help:"Bring a data folder to this program's schema." example:"console migrate --data ./data"`
	Config   configCmd   `cmd:"" help:"The effective configuration, with where each value is from." example:"console config --data ./data"`
	Version  versionCmd  `cmd:"" help:"Which program this is." example:"console version"`
}

// env is what a command reads and writes.
type env struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// exit ends the program with a status and no message of its own.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// newParser reads command lines into c; exited hears that help was written.
func newParser(c *cli, e env, exited func(code int)) *kong.Kong {
	parser, err := kong.New(c,
		kong.Name("console"),
		kong.Description("People approve what agents are about to do; the engine then does exactly that, once."),
		kong.Writers(e.out, e.err),
		kong.Exit(exited),
		kong.DefaultEnvars("COUNTERSIGN"),
		kong.UsageOnError(),
		kong.Help(help),
		kong.Vars{"roles": strings.Join(identity.WellKnownRoles, ", "), "scopes": strings.Join(identity.Scopes, ", ")},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		panic("console: command line: " + err.Error())
	}
	return parser
}

// run parses the arguments, runs the command and returns the exit status.
func run(args []string, e env) (status int) {
	var c cli
	exited := -1
	parser := newParser(&c, e, func(code int) { exited = code })
	parsed, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help wrote its text
	}
	if err != nil {
		fmt.Fprintf(e.err, "console: %v; see console --help\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parsed.BindTo(ctx, (*context.Context)(nil))
	return report(parsed.Run(e), e)
}

// report prints an error in one line, or one line a place, and turns it into
// an exit status.
func report(err error, e env) int {
	var code exit
	var places strictyaml.Problems
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &places):
		for _, p := range places {
			fmt.Fprintln(e.err, printable(p.Pos.String()+": "+p.Message))
		}
		return exitFailed
	}
	fmt.Fprintf(e.err, "console: %s\n", printable(err.Error()))
	return exitFailed
}

// printable shows control characters as escapes, so that nothing a workflow
// or an agent wrote can move the cursor or rewrite a line.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || !control(r) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "⟦U+%04X⟧", r)
	}
	return b.String()
}

// control reports C0, C1 and the characters that reorder or hide text.
func control(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0x061c, r == 0xfeff:
		return true
	}
	return false
}

// printJSON writes v as indented JSON.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// logging is the flags of commands that log.
type logging struct {
	LogLevel string `help:"What is logged to standard error: debug, info, warn or error." enum:",debug,info,warn,error" default:""`
	LogJSON  bool   `help:"Log as JSON lines." name:"log-json"`
}

// logger logs from the level asked for, else from the command's own.
func (l logging) logger(e env, level slog.Level) *slog.Logger {
	if l.LogLevel != "" {
		if err := level.UnmarshalText([]byte(l.LogLevel)); err != nil {
			panic("console: the enum of log levels allows " + l.LogLevel)
		}
	}
	options := &slog.HandlerOptions{Level: level}
	if l.LogJSON {
		return slog.New(slog.NewJSONHandler(e.err, options))
	}
	return slog.New(slog.NewTextHandler(e.err, options))
}
