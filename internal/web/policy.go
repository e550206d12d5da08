package web

import "github.com/rolecall/rolecall/internal/authz"

// Policy is what an operation requires of its caller. The API declares it. A page of the
// console has the policy of the operation that it stands for.
type Policy struct {
	*authz.Policy
	Limiter Limiter
}
