package rolecall

// IdempotencyKey is a stored idempotency key with the result of the first request that had
// the key. A repeated request with the key gets the same result.
type IdempotencyKey struct {
	UserID      UserID        // the user who sent the key, which is unique per tenant, user and operation
	Operator    OperatorKeyID // set instead of UserID if an operator sent the key in a request that manages tenants
	Operation   string
	Hash        []byte // SHA-256 of the key
	Fingerprint []byte // SHA-256 of the request; requests with equal JSON values have the same fingerprint
	ExpiresAt   Time
	ResourceID  AnyID
	EventID     EventID // the event of the creation; zero if Operator is set
	Resource    []byte  // the created object as JSON, with all members and without secrets; nil after an erasure
}

// ErrKeyClaimed is the error of the store for an idempotency key that is stored already.
// Clients never see this error. They get the stored result, or ErrKeyReused.
var ErrKeyClaimed = &Error{Kind: Conflict, Code: "idempotency-key-claimed", Detail: "This idempotency key is stored already."}
