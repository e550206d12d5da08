// Command withpostgres runs a command with a PostgreSQL server to test on:
//
//	go run ./internal/pgtest/withpostgres go test ./...
//
// The started command finds the URL of the server in ROLECALL_TEST_POSTGRES. If this
// variable is already set, withpostgres starts no server. If PostgreSQL or PgBouncer is
// not installed, withpostgres installs both with the system's package manager, unless
// this requires a password.
//
// With -citus as the first argument, withpostgres sets ROLECALL_TEST_CITUS, which lets
// the tests of the command start Citus clusters. Without the Citus extension, it does not
// run the command. This is an error only if ROLECALL_REQUIRE_CITUS is set.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/rolecall/rolecall/internal/pgtest"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: withpostgres command [argument ...]")
		os.Exit(2)
	}
	command, start := os.Args[1:], run
	if command[0] == "-citus" {
		command, start = command[1:], runOnCitus
	}
	code, err := start(command)
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
	}
	os.Exit(code)
}

// runOnCitus is like run, for tests on Citus.
func runOnCitus(command []string) (code int, err error) {
	cluster, err := pgtest.StartCluster(0)
	if errors.Is(err, pgtest.ErrNoCitus) && os.Getenv("ROLECALL_REQUIRE_CITUS") == "" {
		return 0, fmt.Errorf("NOT TESTED ON CITUS: %w", err)
	}
	if err == nil {
		err = cluster.Stop()
	}
	if err == nil {
		err = os.Setenv(pgtest.CitusVariable, "1")
	}
	if err != nil {
		return 1, err
	}
	return run(command)
}

// run returns the exit code of the command, or 1 and the reason why it did not run.
func run(command []string) (code int, err error) {
	if os.Getenv(pgtest.Variable) == "" {
		server, err := start()
		if err != nil {
			return 1, err
		}
		defer func() {
			if stopErr := server.Stop(); err == nil && stopErr != nil {
				code, err = 1, stopErr
			}
		}()
		if err := os.Setenv(pgtest.Variable, server.URL()); err != nil {
			return 1, err
		}
	}
	// The command also gets an interrupt from the terminal. This process ignores it, and
	// ends when the command ends.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	child := exec.Command(command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = child.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// start starts a server. If PostgreSQL or PgBouncer is not installed, it first tries to
// install them.
func start() (*pgtest.Server, error) {
	if !pgtest.Installed() {
		if err := install(); err != nil {
			fmt.Fprintln(os.Stderr, "withpostgres:", err)
		}
	}
	return pgtest.Start()
}

// install installs PostgreSQL and PgBouncer with the first available package manager.
func install() error {
	root := os.Geteuid() == 0
	for _, manager := range []struct {
		needsRoot bool
		commands  [][]string
	}{
		{true, [][]string{{"apt-get", "update"}, {"apt-get", "install", "-y", "--no-install-recommends", "postgresql", "pgbouncer"}}},
		{true, [][]string{{"dnf", "install", "-y", "postgresql-server", "pgbouncer"}}},
		{true, [][]string{{"apk", "add", "postgresql", "pgbouncer"}}},
		{false, [][]string{{"brew", "install", "postgresql", "pgbouncer"}}}, // refuses root
	} {
		if _, err := exec.LookPath(manager.commands[0][0]); err != nil || manager.needsRoot != root {
			continue
		}
		for _, command := range manager.commands {
			fmt.Fprintln(os.Stderr, "withpostgres: running", command)
			child := exec.Command(command[0], command[1:]...)
			child.Stdout, child.Stderr = os.Stderr, os.Stderr
			if err := child.Run(); err != nil {
				return fmt.Errorf("%v: %w", command, err)
			}
		}
		return nil
	}
	return errors.New("cannot install it here without a password")
}
