package httpapi

import (
	"context"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/gate"
)

// lane is what an operation waits in line with. Each has bounds of its own, so
// that no kind of work keeps the others from being done.
type lane int

// The lanes. What is not of a tenant, health above all, is in none.
const (
	workLane     lane = iota // reads, lists and changes
	sessionLane              // what clients ask before anything else, and signing out
	passwordLane             // what costs a password hash
	lanes
)

// laneNames are the labels of the lanes in the metrics.
var laneNames = [lanes]string{workLane: "work", sessionLane: "session", passwordLane: "password"}

// The bounds of the lanes, per core. Inside is what the stores can use: a commit
// that many share, and all connections of a pool. Waiting is cheap and a refusal is
// not, so that a client is held for the patience before it can ask again.
const (
	workSlots     = 32
	sessionSlots  = 64
	passwordSlots = 51 // one that is hashed, and a second of work: they wait for the hash
	laneQueue     = 1024
	lanePatience  = time.Second
)

// errOverloaded refuses what would have to wait too long.
var errOverloaded = rolecall.ErrUnavailable.With("More is asked than can be answered now. Nothing was done; repeat the request shortly.")

// refusals are what a lane that is full answers.
var refusals = [lanes]error{workLane: errOverloaded, sessionLane: errOverloaded, passwordLane: rolecall.ErrBusy}

func newLanes() [lanes]*gate.Gate {
	cores := runtime.GOMAXPROCS(0)
	return [lanes]*gate.Gate{
		workLane:     gate.New(workSlots*cores, laneQueue*cores, lanePatience),
		sessionLane:  gate.New(sessionSlots*cores, laneQueue*cores, lanePatience),
		passwordLane: gate.New(passwordSlots*cores, laneQueue*cores, lanePatience),
	}
}

// enter waits for a place in the lane of the operation. The place is for work
// alone: nobody holds it while a client is slow to send or to read.
func (x *exchange) enter() error {
	if !x.server.lanes[x.route.lane].Enter(x.ctx) {
		if x.ctx.Err() == context.Canceled {
			return context.Canceled
		}
		x.server.meters.shed[x.route.lane].Inc()
		return refusals[x.route.lane]
	}
	x.inLane = true
	return nil
}

// leave gives the place to the next, if there is one to give.
func (x *exchange) leave() {
	if x.inLane {
		x.inLane = false
		x.server.lanes[x.route.lane].Leave()
	}
}

// newShed returns the counters of what each lane refused.
func newShed(registry prometheus.Registerer) (shed [lanes]prometheus.Counter) {
	all := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rolecall_http_requests_shed_total", Help: "Requests refused because too many were under way, by lane.",
	}, []string{"lane"})
	if registry != nil {
		registry.MustRegister(all)
	}
	for l, name := range laneNames {
		shed[l] = all.WithLabelValues(name)
	}
	return shed
}
