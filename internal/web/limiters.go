package web

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/limiter"
)

// Limiter identifies a concurrency limiter. Each kind of work has a separate limiter, so that one
// kind cannot block the others.
type Limiter int

// The concurrency limiters. Requests without a tenant, such as health checks, use no limiter.
const (
	WorkLimiter     Limiter = iota // reads, lists and changes
	SessionLimiter                 // the session of the caller, and signing out
	PasswordLimiter                // operations that hash a password
	LargeLimiter                   // the session of a caller with thousands of permissions
	limiterKinds
)

// Policy has the requirements that an operation has on its caller. The API declares the policy of
// each operation. A page of the console has the policy of the operation that the page calls.
type Policy struct {
	*authz.Policy
	Limiter Limiter
	Summary string // of the operation in the API's document, such as "Suspend a user"
	Path    string // of the operation, such as /users/{id}

	// Curl returns a command that sends the request of the operation to the address. given has the
	// values of parameters by name. The others have the values of the example.
	Curl func(address string, given url.Values) string
}

// limiterLabels name the limiters in the metrics.
var limiterLabels = [limiterKinds]string{WorkLimiter: "work", SessionLimiter: "session", PasswordLimiter: "password", LargeLimiter: "large"}

// limiterSlots are the maximum numbers of requests that run concurrently, per CPU core. The stores
// can serve this number of requests when they group commits and use all connections of a pool.
var limiterSlots = [limiterKinds]int{
	WorkLimiter:     32,
	SessionLimiter:  64,
	PasswordLimiter: 51, // one running hash and the waiting hashes, which take about one second
	LargeLimiter:    1,  // a response can have 14 MB: with 64 of them, 130 requests took 2.3 GB
}

// The limits of the queues. A queued request costs less than a refused one, because the client of a
// refused request sends the request again later.
const (
	limiterQueue = 1024 // requests that wait, per core
	largeQueue   = 7    // requests that wait in LargeLimiter, per core; each has up to 20 MB
	limiterWait  = time.Second
)

// errOverloaded is the error for a request that would have to wait too long.
var errOverloaded = rolecall.ErrUnavailable.With("The service is overloaded. Nothing was done. Repeat the request shortly.")

// workLimiter is a concurrency limiter, with the error for the requests that it refuses.
type workLimiter struct {
	*limiter.Limiter
	shared  *limiter.Shared[string] // the same limiter with shares between tenants; nil without them
	refusal error
	refused prometheus.Counter
}

func newLimiters(registry prometheus.Registerer) (all [limiterKinds]workLimiter) {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rolecall_http_requests_shed_total", Help: "Requests refused because too many were under way, by limiter.",
	}, []string{"limiter"})
	if registry != nil {
		registry.MustRegister(refused)
	}
	cores := runtime.GOMAXPROCS(0)
	for kind, label := range limiterLabels {
		all[kind] = workLimiter{limiter.New(limiterSlots[kind]*cores, limiterQueue*cores, limiterWait), nil, errOverloaded, refused.WithLabelValues(label)}
	}
	large := &all[LargeLimiter]
	large.shared = limiter.NewShared[string](limiterSlots[LargeLimiter]*cores, largeQueue*cores, limiterWait)
	large.Limiter = large.shared.Limiter
	all[PasswordLimiter].refusal = rolecall.ErrBusy
	return all
}

// Enter waits for a slot in the concurrency limiter, and assigns the slot to the request. Hold the
// slot only while the server works. Call Leave before you read the body, because the client may
// send the body slowly. Call Enter again after you have read the body.
func (q *Request) Enter(kind Limiter) error {
	l := &q.site.limiters[kind]
	if !l.acquire(q) {
		if q.Err() == context.Canceled {
			return context.Canceled
		}
		l.refused.Inc()
		return l.refusal
	}
	q.limiter = l
	return nil
}

// acquire waits for a slot and reports whether the request has got one.
func (l *workLimiter) acquire(q *Request) (ok bool) {
	if l.shared == nil {
		return l.Acquire(q)
	}
	q.release, ok = l.shared.AcquireFor(q, q.Tenant)
	return ok
}

// Leave frees the slot that the request holds in a concurrency limiter.
func (q *Request) Leave() {
	switch {
	case q.limiter == nil:
		return
	case q.release != nil:
		q.release()
	default:
		q.limiter.Release()
	}
	q.limiter, q.release = nil, nil
}

// Occupy takes all slots of a concurrency limiter. The slots stay taken until the caller calls
// free. Only tests use Occupy.
func (s *Site) Occupy(ctx context.Context, kind Limiter) (free func()) {
	slots := s.limiters[kind].Slots() // runtime.GOMAXPROCS can have changed: it is higher while a password is hashed
	for range slots {
		s.limiters[kind].Acquire(ctx)
	}
	return func() {
		for range slots {
			s.limiters[kind].Release()
		}
	}
}

// The limits of requests that wait for changes. They hold no slot of a concurrency limiter.
const (
	waitsAtOnce = 1000 // of one process, with shares between tenants
	waitsOfOne  = 8    // of one principal in one process
)

// waitSpare is the time to send the response after a wait.
const waitSpare = 30 * time.Second

// errManyWaits is the error for a request that may not wait, or not any longer, because the process has too
// many of them.
var errManyWaits = rolecall.ErrUnavailable.With("Too many requests wait for changes. Repeat the request shortly.")

// quota limits how many requests of a kind are under way, in total and for each owner. It is safe
// for concurrent use.
type quota struct {
	limit, limitOfOne int

	mu      sync.Mutex
	running int
	of      map[string]int // number of running requests by owner
}

// begin reports whether one more request of the owner may begin. If it may, the caller must call
// end after the request. Otherwise, byOwner reports whether the limit of the owner is reached.
func (e *quota) begin(owner string) (ok, byOwner bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of[owner] >= e.limitOfOne {
		return false, true
	}
	if e.running >= e.limit {
		return false, false
	}
	if e.of == nil {
		e.of = map[string]int{}
	}
	e.running++
	e.of[owner]++
	return true, false
}

func (e *quota) end(owner string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running--
	if e.of[owner]--; e.of[owner] == 0 {
		delete(e.of, owner)
	}
}

// waits limits how many requests wait for changes.
type waits struct {
	ofProcess *limiter.Shares[rolecall.TenantID]
	ofOne     quota // by principal
}

func newWaits() waits {
	return waits{limiter.NewShares[rolecall.TenantID](waitsAtOnce), quota{limit: math.MaxInt, limitOfOne: waitsOfOne}}
}

// begin begins a wait of the principal in the tenant. The wait must stop when the returned context ends.
func (w *waits) begin(ctx context.Context, tenant rolecall.TenantID, principal string) (running context.Context, end func(), err error) {
	if ok, _ := w.ofOne.begin(principal); !ok {
		return nil, nil, rolecall.ErrTooManyWaits
	}
	running, endShare, ok := w.ofProcess.Begin(ctx, tenant)
	if !ok {
		w.ofOne.end(principal)
		return nil, nil, errManyWaits
	}
	return running, sync.OnceFunc(func() {
		endShare()
		w.ofOne.end(principal)
	}), nil
}

// BeginWait prepares the request for waits of at most the given time in total. It returns
// ErrTooManyWaits if the principal has too many requests that wait. If the process has too many, the tenant
// with most of them loses its newest, and Await returns ErrUnavailable there. BeginWait returns ErrUnavailable
// if no tenant has more than the tenant of the request would have. The caller must call end after the waits.
func (q *Request) BeginWait(w http.ResponseWriter, longest time.Duration) (end func(), err error) {
	waiting, end, err := q.site.waits.begin(q.Context, q.Principal.Tenant.ID, q.Principal.User.ID.String())
	if err != nil {
		return nil, err
	}
	q.waiting = waiting
	control := http.NewResponseController(w)
	err = errors.Join(
		control.SetReadDeadline(time.Time{}), // an expired read deadline would end the context of the connection
		control.SetWriteDeadline(time.Now().Add(longest+waitSpare)))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		end()
		return nil, err
	}
	return end, nil
}

// Await waits until the channel is closed, the time has passed or the process is about to stop, after
// BeginWait. It returns an error if the client has disconnected, and ErrUnavailable if another tenant needs the
// room. The request holds no slot of a concurrency limiter
// during and after the wait, and gets a new deadline.
func (q *Request) Await(changed <-chan struct{}, longest time.Duration) error {
	q.Leave()
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-q.site.drained:
	case <-q.waiting.Done():
		if cause := context.Cause(q.waiting); cause != limiter.ErrLostShare {
			return cause
		}
		q.renew(time.Now().Add(q.site.deadline))
		return errManyWaits
	}
	q.renew(time.Now().Add(q.site.deadline))
	return nil
}
