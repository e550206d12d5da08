// Package conventions contains only tests of rules for the whole tree: the imports of each
// package, the size of files, doc comments of exported names, and documents that agree with
// the code.
package conventions
