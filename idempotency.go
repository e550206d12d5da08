package rolecall

// IdempotencyKey is what a creator sent to make a repeated request safe, and
// what is kept of it: one key, one effect.
type IdempotencyKey struct {
	UserID      UserID        // with tenant and operation the scope of the key
	Operator    OperatorKeyID // in place of user and tenant, for what an operator does to tenants
	Operation   string
	Hash        []byte // SHA-256 of the key
	Fingerprint []byte // SHA-256 of the request, JSON by value
	ExpiresAt   Time
	Status      int
	Location    string // path of what was created
	ResourceID  AnyID
	EventID     EventID // the event of the creation; zero if Operator is set
	Resource    []byte  // what was created as JSON, unprojected and without secrets; nil once it was erased
}

// ErrKeyClaimed says that an idempotency key is taken: the request is a repeat,
// or a reuse. It is answered by a replay or ErrKeyReused and never shown.
var ErrKeyClaimed = &Error{Kind: Conflict, Code: "idempotency-key-claimed", Detail: "The idempotency key is taken."}
