// Package node combines the services of one process on its database, and runs their
// background work. This work receives changes by other processes, sends mail, records
// refused requests, and purges expired rows. The package may import directory, signin and
// the packages that these may import.
package node

import (
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/webhooks"
)

// Node contains the services of one process on its database.
type Node struct {
	Access    *access.Service
	Directory *directory.Service
	SignIn    *signin.Service
	Webhooks  *webhooks.Service
}

// New returns a node on the database. Call Run to start its background work.
func New(db store.Database, o access.Options) *Node {
	a := access.New(db, o)
	return &Node{Access: a, Directory: directory.New(a), SignIn: signin.New(a), Webhooks: webhooks.New(a)}
}
