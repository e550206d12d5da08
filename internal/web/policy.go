package web

import "github.com/rolecall/rolecall/internal/service"

// Policy is what an operation requires of its caller. The API declares it. A page of the
// console has the policy of the operation that it stands for.
type Policy struct {
	Need    service.Need // nil: works without a session
	StepsUp bool         // needs a recent sign-in or re-authentication
	Limiter Limiter
}
