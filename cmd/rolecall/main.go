// Command rolecall is the server, and the command line for its operators. Its package has the
// commands, the settings, the wiring, and the serving process from its start to its end.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the process immediately
	os.Exit(runCommand(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}
