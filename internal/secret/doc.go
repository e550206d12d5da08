// Package secret contains the cryptography of Rolecall: password hashes, bearer tokens,
// one-time codes, and encryption and authentication with the keys of the instance. No other
// package chooses an algorithm.
package secret
