// The tests of the client that need the program are in this module, so that the client does not depend on the server.
module github.com/rolecall/rolecall/client/e2e

go 1.26.0

require (
	github.com/rolecall/rolecall v0.0.0
	github.com/rolecall/rolecall/client v0.0.0
)

require (
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/image v0.46.0 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace (
	github.com/rolecall/rolecall => ../..
	github.com/rolecall/rolecall/client => ..
)
