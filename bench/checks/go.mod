// The library for JWTs is only in this module, so that Rolecall does not depend on it.
module github.com/rolecall/rolecall/bench/checks

go 1.26.0

require (
	github.com/golang-jwt/jwt/v5 v5.3.1
	github.com/rolecall/rolecall/client v0.0.0
)

replace github.com/rolecall/rolecall/client => ../../client
