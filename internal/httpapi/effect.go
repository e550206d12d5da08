package httpapi

// effect is what an operation can do to access. Each operation declares one, and step-up
// follows from it. An operation that fits more than one declares the first that fits.
type effect string

const (
	// effectGrants gives somebody rights, a way to sign in or a credential, or changes one.
	// The settings of a tenant belong here: they decide who gets in, and how.
	effectGrants effect = "grants"
	// effectRemoves takes away what the same caller cannot simply give back: a user, a
	// role, an assignment, a second factor.
	effectRemoves effect = "removes"
	// effectEnds ends access: it suspends, signs out, revokes or withdraws. That must be
	// quick.
	effectEnds effect = "ends"
	// effectProves gives access to the sender alone, who proves it with the same request:
	// by a password, a code, a passkey or a link.
	effectProves effect = "proves"
	// effectNone gives and takes no access.
	effectNone effect = "none"
)

// stepsUp reports whether the operation needs a sign-in or a confirmation that is recent.
// An operation without a declared effect does. An operator's key has no session.
func (o *operation) stepsUp() bool {
	if o.need == nil || o.operator {
		return false
	}
	switch o.effect {
	case effectEnds, effectProves, effectNone:
		return false
	}
	return true
}
