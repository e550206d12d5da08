// Command rolecall serves users, roles and sessions of many tenants over HTTP,
// and operates the store that they live in.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rolecall/rolecall/internal/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the process at once
	os.Exit(server.Run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}
