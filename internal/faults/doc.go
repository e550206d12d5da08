// Package faults breaks what Rolecall runs on while many clients use it, and
// checks afterwards that nothing acknowledged was lost, nothing was done twice and
// nothing was half done. It has tests only.
package faults
