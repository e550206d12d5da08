// Package checks measures how many permission checks a core makes: with GET /auths/check, in the memory of
// an application, and by the verification of a signed token. Run it in this folder:
//
//	go test -bench . -cpu 1
//
// It needs Linux, which reports the processor time of the service.
package checks
