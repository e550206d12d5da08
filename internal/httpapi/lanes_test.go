package httpapi

import (
	"net/http"
	"runtime"
	"testing"
)

// laneSlots are the slots of each lane, per core.
var laneSlots = [lanes]int{workLane: workSlots, sessionLane: sessionSlots, passwordLane: passwordSlots}

// fillLane takes all slots of the lane, until they are given back.
func fillLane(t *testing.T, s *testServer, l lane) (free func()) {
	t.Helper()
	slots := laneSlots[l] * runtime.GOMAXPROCS(0)
	for range slots {
		if !s.edge.lanes[l].Enter(t.Context()) {
			t.Fatal("the lane is narrower than it says")
		}
	}
	return func() {
		for range slots {
			s.edge.lanes[l].Leave()
		}
	}
}

// shed returns how many requests the metrics say the lane has refused.
func (s *testServer) shed(t *testing.T, lane string) float64 {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "rolecall_http_requests_shed_total" && metric.GetLabel()[0].GetValue() == lane {
				return metric.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("the metrics say nothing of the lane %s", lane)
	return 0
}

// TestFullLane has each lane be full in turn. Its operations are refused, with
// nothing done, and those of the others are not; nor is health.
func TestFullLane(t *testing.T) {
	s := newTestServer(t)
	const none = lanes
	operations := []struct {
		lane         lane
		method, path string
		body         string
		well         int
		changes      bool
	}{
		{workLane, "GET", "/users", "", http.StatusOK, false},
		{workLane, "POST", "/users", `{"email":"shed@example.com","name":"Shed"}`, http.StatusCreated, true},
		{passwordLane, "PUT", "/auths/password", `{"currentPassword":"` + ownerPassword + `","newPassword":"` + ownerPassword + ` new"}`, http.StatusNoContent, true},
		{none, "GET", "/livez", "", http.StatusOK, false},
		{none, "GET", "/readyz", "", http.StatusOK, false},
		{sessionLane, "GET", "/auths/session", "", http.StatusOK, false},
		{sessionLane, "POST", "/auths/logout", "", http.StatusNoContent, true},
	}
	for full, name := range laneNames {
		free := fillLane(t, s, lane(full))
		refused := 0
		for _, op := range operations {
			if op.lane != lane(full) && op.changes {
				continue
			}
			r := s.as(s.owner, op.method, op.path, op.body, "Idempotency-Key", "shed")
			switch {
			case op.lane != lane(full) && r.StatusCode != op.well:
				t.Errorf("%s %s answered %d while the lane %s is full: %s", op.method, op.path, r.StatusCode, name, r.body)
			case op.lane == lane(full):
				refused++
				if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
					t.Errorf("%s %s answered %d in the full lane %s, Retry-After %q", op.method, op.path, r.StatusCode, name, r.Header.Get("Retry-After"))
				}
			}
		}
		free()
		if shed := s.shed(t, name); shed != float64(refused) {
			t.Errorf("%d requests were refused in the lane %s, and %v counted", refused, name, shed)
		}
	}
	for _, op := range operations { // what was refused was not done: it is done now
		if r := s.as(s.owner, op.method, op.path, op.body, "Idempotency-Key", "shed"); r.StatusCode != op.well || r.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s %s answered %d after all: %s", op.method, op.path, r.StatusCode, r.body)
		}
	}
}

// TestEveryHashIsInThePasswordLane keeps what costs a hash from being asked for
// beside the bound on it.
func TestEveryHashIsInThePasswordLane(t *testing.T) {
	for _, op := range operations {
		hashes := false
		for _, problem := range op.problems {
			hashes = hashes || problem.Code == "busy"
		}
		if hashes != (op.lane == passwordLane) {
			t.Errorf("%s: answers busy: %v, lane %s", op.id, hashes, laneNames[op.lane])
		}
	}
}
