// The client needs only the standard library, so that applications do not inherit the dependencies of the server.
module github.com/rolecall/rolecall/client

go 1.26.0
