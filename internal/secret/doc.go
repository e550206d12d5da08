// Package secret holds everything of Rolecall that is cryptography: password
// hashes, bearer tokens, and what is sealed or authenticated under the keys of
// the instance. No other package chooses an algorithm.
package secret
