package rolecall

// OperatorKey lets a program act as an operator: on tenants, and in them. The key
// itself is a secret and never part of it.
type OperatorKey struct {
	ID         OperatorKeyID
	Name       string
	Tenants    []string // names of those that it is for; nil: all
	CreatedAt  Time
	ExpiresAt  Time
	LastUsedAt Time // zero: never
}
