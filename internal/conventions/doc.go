// Package conventions holds no code, only the tests of what the whole tree agrees
// on: which package imports which, how large files are, that exported names say
// what they are, and that the documents tell the truth.
package conventions
