// Package node combines the services of one process on its database, and runs their
// background work: it receives changes by other processes, sends mail, records refusals,
// and purges expired rows. It may import directory, signin and the packages that these
// may import.
package node

import (
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// Node is one process on the database.
type Node struct {
	Access    *access.Service
	Directory *directory.Service
	SignIn    *signin.Service
}

// New returns a node on the database.
func New(db store.Database, o access.Options) *Node {
	a := access.New(db, o)
	return &Node{Access: a, Directory: directory.New(a), SignIn: signin.New(a)}
}
