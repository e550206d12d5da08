package rolecall

// Bucket is one counter of failed sign-ins and its limit.
type Bucket struct {
	Key    []byte // keyed hash of what is counted
	Limit  int
	Window Seconds
	Full   *Error // of an attempt past the limit; nil: ErrTooManyAttempts with the time to wait
}

// ID returns the id by which caches know the bucket: the start of its key.
func (b Bucket) ID() (id AnyID) {
	copy(id[:], b.Key)
	return id
}

// Attempts is the state of a bucket after an attempt was counted.
type Attempts struct {
	Count  int
	EndsAt Time // of the window
}

// Counted is one bucket in which an attempt was counted, in one window. It is all that
// may be refunded for the attempt.
type Counted struct {
	Key    []byte `json:"key"`
	EndsAt Time   `json:"endsAt"` // of the window
}
