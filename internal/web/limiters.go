package web

import (
	"context"
	"net/url"
	"runtime"
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
var limiterLabels = [limiterKinds]string{WorkLimiter: "work", SessionLimiter: "session", PasswordLimiter: "password"}

// limiterSlots are the maximum numbers of requests that run concurrently, per CPU core. The stores
// can serve this number of requests when they group commits and use all connections of a pool.
var limiterSlots = [limiterKinds]int{
	WorkLimiter:     32,
	SessionLimiter:  64,
	PasswordLimiter: 51, // one running hash and the waiting hashes, which take about one second
}

// The limits of the queues. A queued request costs less than a refused one, because the client of a
// refused request sends the request again later.
const (
	limiterQueue = 1024 // requests that wait, per core
	limiterWait  = time.Second
)

// errOverloaded is the error for a request that would have to wait too long.
var errOverloaded = rolecall.ErrUnavailable.With("The service is overloaded. Nothing was done. Repeat the request shortly.")

// workLimiter is a concurrency limiter, with the error for the requests that it refuses.
type workLimiter struct {
	*limiter.Limiter
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
		all[kind] = workLimiter{limiter.New(limiterSlots[kind]*cores, limiterQueue*cores, limiterWait), errOverloaded, refused.WithLabelValues(label)}
	}
	all[PasswordLimiter].refusal = rolecall.ErrBusy
	return all
}

// Enter waits for a slot in the concurrency limiter, and assigns the slot to the request. Hold the
// slot only while the server works. Call Leave before you read the body, because the client may
// send the body slowly. Call Enter again after you have read the body.
func (q *Request) Enter(kind Limiter) error {
	l := &q.site.limiters[kind]
	if !l.Acquire(q) {
		if q.Err() == context.Canceled {
			return context.Canceled
		}
		l.refused.Inc()
		return l.refusal
	}
	q.limiter = l
	return nil
}

// Leave frees the slot that the request holds in a concurrency limiter.
func (q *Request) Leave() {
	if q.limiter != nil {
		q.limiter.Release()
		q.limiter = nil
	}
}

// Occupy takes all slots of a concurrency limiter. The slots stay taken until the caller calls
// free. Only tests use Occupy.
func (s *Site) Occupy(ctx context.Context, kind Limiter) (free func()) {
	slots := limiterSlots[kind] * runtime.GOMAXPROCS(0)
	for range slots {
		s.limiters[kind].Acquire(ctx)
	}
	return func() {
		for range slots {
			s.limiters[kind].Release()
		}
	}
}
