package peers

import (
	"context"
	"net"
	"net/url"

	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/process"
)

// Postgres is a PostgreSQL server with the settings of production. It listens on TCP, because
// the driver of Keycloak does not support Unix sockets.
type Postgres struct {
	server  *pgtest.Server
	address string
}

// StartPostgres starts a server.
func StartPostgres() (*Postgres, error) {
	address, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	server, err := pgtest.Start(append(pgtest.Production, "listen_addresses="+host, "port="+port)...)
	return &Postgres{server, address}, err
}

// NewDatabase creates an empty database, and a role of the same name that owns it and needs
// no password. It returns the URL of the database.
func (p *Postgres) NewDatabase(ctx context.Context, name string) (string, error) {
	if _, err := p.server.NewDatabase(ctx, name); err != nil {
		return "", err
	}
	u := url.URL{Scheme: "postgres", User: url.User(name), Host: p.address, Path: "/" + name}
	return u.String(), nil
}

// PID returns the id of the server's root process.
func (p *Postgres) PID() (int, error) { return p.server.PID() }

// Stop stops the server and removes its data.
func (p *Postgres) Stop() error { return p.server.Stop() }
