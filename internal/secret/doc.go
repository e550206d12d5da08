// Package secret contains the cryptography of Rolecall: password hashes, bearer tokens,
// one-time codes, and encryption and authentication with the keys of the instance. Only
// this package chooses cryptographic algorithms.
package secret
