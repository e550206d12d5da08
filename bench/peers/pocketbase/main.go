// Command pocketbase is PocketBase with durable commits, which survive a loss of power.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/core"
)

// pragmas are PocketBase's default pragmas, but with synchronous(FULL) instead of
// NORMAL.
const pragmas = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=journal_size_limit(200000000)&_pragma=synchronous(FULL)" +
	"&_pragma=foreign_keys(ON)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-32000)"

func main() {
	app := pocketbase.NewWithConfig(pocketbase.Config{DBConnect: connect})
	if err := app.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// connect opens a database file. The database of the request log keeps PocketBase's
// default pragmas.
func connect(path string) (*dbx.DB, error) {
	if strings.HasSuffix(path, "auxiliary.db") {
		return core.DefaultDBConnect(path)
	}
	return dbx.Open("sqlite", path+pragmas)
}
