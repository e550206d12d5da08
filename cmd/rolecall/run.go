package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/rolecall/rolecall"
)

// The exit codes other than 0.
const (
	exitFailure = 1
	exitUsage   = 2 // the command line is wrong

	exitTampered = 3 // the audit log does not verify
)

// program holds the global flags, the environment, the input and the output of a command.
type program struct {
	globals
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// runCommand runs the command in args and returns the exit code. Settings that are not in args come
// from the ROLECALL_… environment variables in environ, or from the file of --config. If ctx ends, the
// command stops in an orderly way.
func runCommand(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var line commandLine
	var helped bool
	variables := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		variables[name] = value
	}
	getenv := func(name string) string { return variables[name] }
	settings := &sources{variables: variables}
	parser, err := kong.New(&line,
		kong.Name("rolecall"),
		kong.Description("Users, roles and sessions of many tenants, over HTTP. Try it with rolecall serve --demo."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }),
		kong.WithBeforeResolve(settings.add),
		kong.ValueFormatter(describeFlag),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.Vars{"version": readVersion().String()},
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return report(stderr, false, err, exitFailure)
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	}
	command, err := parser.Parse(args)
	switch {
	case helped:
		return 0
	case err != nil:
		asJSON := line.JSON || slices.Contains(args, "--json") || variables[variable("json")] == "true"
		return report(stderr, asJSON, fmt.Errorf("%w (see rolecall --help)", err), exitUsage)
	}
	if err := requireValues(command); err != nil {
		return report(stderr, line.JSON, err, exitUsage)
	}
	line.configWarnings = settings.warnings
	switch err := command.Run(&program{line.globals, getenv, stdin, stdout, stderr}); {
	case errors.Is(err, errTampered):
		return exitTampered // the report of the command says why
	case errors.Is(err, errBadConfiguration):
		return exitFailure // the report of the command says why
	case err != nil:
		return report(stderr, line.JSON, err, exitFailure)
	}
	return 0
}

// requireValues returns an error if a flag was given an empty text, as by an unset variable of a script. Without the
// flag, the program can be less restricted: without --operator-listen, it serves /operator to all.
func requireValues(command *kong.Context) error {
	for _, given := range command.Path {
		if flag := given.Flag; flag != nil && flag.Target.Kind() == reflect.String && flag.Target.Len() == 0 {
			return fmt.Errorf("--%s is empty: give it a value, or remove it", flag.Name)
		}
	}
	return nil
}

// isSetting reports whether an environment variable or the file of --config can set the flag. This is true for the flags
// that configure the instance, which have a group in the help. The other flags, such as --yes and
// --email, select the action and its target. A variable that was set for another purpose must not
// change them.
func isSetting(flag *kong.Flag) bool { return flag.Group != nil }

// variable returns the name of the environment variable that sets the flag.
func variable(flag string) string {
	return "ROLECALL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func describeFlag(value *kong.Value) string {
	if value.Flag == nil || !isSetting(value.Flag) || value.Name == "version" {
		return value.Help
	}
	name := variable(value.Name)
	if isSecret(value.Flag) {
		return fmt.Sprintf("%s ($%s, or $%s with the path of a file)", value.Help, name, name+secretFile)
	}
	return fmt.Sprintf("%s ($%s)", value.Help, name)
}

// report writes the error of a command to stderr in one line, as text or as JSON. It returns the
// exit code.
func report(stderr io.Writer, asJSON bool, err error, code int) int {
	sentence := explain(err)
	if !asJSON {
		fmt.Fprintln(stderr, "rolecall: "+sentence)
		return code
	}
	answer := struct {
		Code   string `json:"code"`
		Detail string `json:"detail"`
	}{"failed", sentence}
	if e, ok := errors.AsType[*rolecall.Error](err); ok {
		answer.Code = e.Code
	} else if code == exitUsage {
		answer.Code = "usage"
	}
	if err := json.NewEncoder(stderr).Encode(answer); err != nil {
		return exitFailure
	}
	return code
}

// flagOf has the flags for values that a service names by a pointer.
var flagOf = map[string]string{"/owner/email": "--owner-email", "/owner/name": "--owner-name", "/displayName": "--display-name"}

// explain returns the error as one line for users.
func explain(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*rolecall.Error](err); ok && e.Kind != rolecall.Unavailable {
		text = e.Detail
		if e.FieldErrors != nil {
			text = ""
		}
		for i, fault := range e.FieldErrors {
			if i > 0 {
				text += "; "
			}
			text += cmp.Or(flagOf[fault.Pointer], strings.TrimPrefix(fault.Pointer, "/")) + " " + fault.Detail
		}
	}
	return strings.Join(strings.Fields(text), " ")
}

// results returns the writer for output other than the final result, such as the mail of the demo.
// With --json it discards this output, so that standard output has only the result.
func (p *program) results() io.Writer {
	if p.JSON {
		return io.Discard
	}
	return p.stdout
}

// print writes the result of a command to standard output. If --json is set, it writes result as
// JSON. Otherwise, it writes the lines.
func (p *program) print(result any, lines ...string) error {
	if p.JSON {
		encoder := json.NewEncoder(p.stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(result)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(p.stdout, line); err != nil {
			return err
		}
	}
	return nil
}
