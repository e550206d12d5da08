// Package peers runs other services that manage users, to measure them next to Rolecall. Their
// programs come from package registries, in fixed versions.
package peers

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"

	"github.com/rolecall/rolecall/bench/load"
)

const (
	admin    = "admin@example.com"
	password = "correct horse battery"
	people   = 16 // users who sign in
)

// Operations are the names of the measured operations, in their order.
var Operations = []string{"session", "read", "page", "login", "create"}

// PostgreSQL is the store of a service that needs a PostgreSQL server.
const PostgreSQL = "PostgreSQL"

// About describes a service for the report.
type About struct {
	Name     string
	Version  string
	Store    string // the constant PostgreSQL, or the name of another store
	Hash     string // of passwords, with its parameters
	Compiles bool   // compiles code while it runs, so it is slow at first
}

// Operation is a kind of request to measure.
type Operation struct {
	Name     string   // one of Operations
	Requests []string // complete requests, as in load.Plan
	Status   int      // of a correct response
}

// Peer is another service that manages users.
type Peer interface {
	// About describes the peer.
	About() About
	// Fetch downloads or builds the program in the cache folder, unless it is there. It returns the
	// path of the program.
	Fetch(ctx context.Context, cache string) (program string, err error)
	// Prepare creates the store before the first start.
	Prepare(ctx context.Context, s *Service) error
	// Command returns the command that starts the peer.
	Command(s *Service) *exec.Cmd
	// Ready returns a path that returns 200 as soon as the peer serves.
	Ready() string
	// Fill creates this number of users. The peer must run.
	Fill(ctx context.Context, s *Service, users int) error
	// Plan signs users in and returns the requests of each operation. The peer must run.
	Plan(ctx context.Context, s *Service) ([]Operation, error)
}

// All returns the peers that can be measured.
func All() []Peer { return []Peer{pocketBase{}, keycloak{}, betterAuth{}} }

// person returns the email address of user n of those who sign in.
func person(n int) string { return fmt.Sprintf("person-%02d@example.com", n) }

// names are the first and last names of the created users.
var names = [][2]string{{"Ada", "Lovelace"}, {"Grace", "Hopper"}, {"Hedy", "Lamarr"}, {"Katherine", "Johnson"}}

// request returns the text of a request. Its body may contain load.Number.
func (s *Service) request(method, target, body string, header ...string) string {
	lines := []string{method + " " + target + " HTTP/1.1", "Host: " + s.Address, "User-Agent: bench", "Accept: application/json"}
	lines = append(lines, header...)
	if method != http.MethodGet {
		length := len(strings.ReplaceAll(body, load.Number, "0123456789012345"))
		lines = append(lines, fmt.Sprintf("Content-Length: %d", length))
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

const jsonBody = "Content-Type: application/json"

// send sends the requests in turn, count requests in total. It returns an error unless each
// response has the status.
func (s *Service) send(ctx context.Context, requests []string, status, count int) error {
	const connections = 16
	sent, err := load.RunApart(ctx, load.Plan{
		Address: s.Address, Connections: connections, Duration: fillLimit, Limit: count, Requests: requests, Status: status,
	})
	if err != nil {
		return err
	}
	if err := sent.Err(); err != nil {
		return err
	}
	if sent.Right != count {
		return fmt.Errorf("%d of %d users were created within %v", sent.Right, count, fillLimit)
	}
	return nil
}

// operations returns the operations in order. The status of all operations except the
// creation of a user is 200.
func operations(requests map[string][]string, created int) (list []Operation) {
	for _, name := range Operations {
		op := Operation{Name: name, Requests: requests[name], Status: http.StatusOK}
		if name == "create" {
			op.Status = created
		}
		list = append(list, op)
	}
	return list
}
