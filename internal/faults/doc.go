// Package faults causes faults in the environment of Rolecall while many clients use it.
// Afterwards it checks that no acknowledged change was lost, and that no change was made
// twice or in part. It contains only tests.
package faults
