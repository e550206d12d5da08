package console

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
)

func TestHomeShowsOneEventOfEachJob(t *testing.T) {
	starter := rolecall.JobStarter{Type: rolecall.ActorUser}
	job := &rolecall.Job{ID: rolecall.NewID[rolecall.Job](1), Action: rolecall.JobSuspend, Starter: starter}
	f := frame{pageContext: &pageContext{jobs: map[string]*rolecall.Job{"job": job}}}
	event := func(request string, kind rolecall.EventType) rolecall.Event {
		return rolecall.Event{RequestID: request, Type: kind, Actor: rolecall.Actor{Type: rolecall.ActorUser}}
	}
	signedIn, suspended := event("other", rolecall.EventSignedIn), event("job", rolecall.EventUserSuspended)
	var kinds []rolecall.EventType
	for _, e := range oncePerJob(f, []rolecall.Event{signedIn, suspended, suspended, signedIn, suspended, event("job", rolecall.EventUserUpdated)}) {
		kinds = append(kinds, e.Type)
	}
	if want := []rolecall.EventType{rolecall.EventSignedIn, rolecall.EventUserSuspended, rolecall.EventSignedIn, rolecall.EventUserUpdated}; !slices.Equal(kinds, want) {
		t.Errorf("shows %v, want %v", kinds, want)
	}
}
