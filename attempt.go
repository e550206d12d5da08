package rolecall

// Bucket is a counter of failed attempts, such as sign-ins from one address, with its limit
// per time window.
type Bucket struct {
	Key    []byte // keyed hash of the account or address whose attempts are counted
	Limit  int
	Window Seconds
	Full   *Error // error after the limit is reached; nil: ErrTooManyAttempts with the time to wait
}

// ID returns the first 16 bytes of the key. Caches use them as the id of the bucket.
func (b Bucket) ID() (id AnyID) {
	copy(id[:], b.Key)
	return id
}

// Attempts is the state of a bucket: the number of attempts in its current time window, and
// the end of the window.
type Attempts struct {
	Count  int
	EndsAt Time // end of the window
}

// Counted identifies an attempt that was counted in one window of a bucket. It is needed to
// subtract the attempt from the count later.
type Counted struct {
	Key    []byte `json:"key"`
	EndsAt Time   `json:"endsAt"` // end of the window
}
