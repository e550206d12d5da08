// Command rolecall is the server and the command line for its operators. The package defines the
// commands and settings, connects the other packages, and starts and stops the server.
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
	os.Exit(runCommand(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
