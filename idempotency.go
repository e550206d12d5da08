package rolecall

// IdempotencyKey is a stored idempotency key with the result of the first request. A
// repeated request gets the same result.
type IdempotencyKey struct {
	UserID      UserID        // the key is unique per tenant, user and operation
	Operator    OperatorKeyID // set instead of UserID for requests of operators that manage tenants
	Operation   string
	Hash        []byte // SHA-256 of the key
	Fingerprint []byte // SHA-256 of the request; the same for equal JSON values
	ExpiresAt   Time
	Status      int
	Location    string // path of the created object
	ResourceID  AnyID
	EventID     EventID // the event of the creation; zero if Operator is set
	Resource    []byte  // the created object as JSON, with all members and without secrets; nil after an erasure
}

// ErrKeyClaimed reports that the idempotency key is stored already. The caller gets
// the stored result or ErrKeyReused instead of this error.
var ErrKeyClaimed = &Error{Kind: Conflict, Code: "idempotency-key-claimed", Detail: "This idempotency key is stored already."}
