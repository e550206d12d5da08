package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// testCancelStorm lets half of the clients disconnect at random moments of their requests.
// Every acknowledged change must exist, and no change of another client may be lost. If a
// client repeats a creation with the same idempotency key, the user must be created only once.
func testCancelStorm(t *testing.T, p *program) {
	const workers, each = 16, 40
	w := newWorld(t, p)
	target := w.user(t, "storm", "")
	var mu sync.Mutex
	acknowledged, changes := map[string]bool{w.owner.id: true, target: true}, []string{}
	var running sync.WaitGroup
	for worker := range workers {
		leaves := worker%2 == 0
		running.Go(func() {
			for i := range each {
				name := fmt.Sprintf("storm-%d-%d", worker, i)
				body, key := fmt.Sprintf(`{"email":"%s@canary.example","name":"Storm"}`, name), "idempotency-key: "+name
				create := func(ctx context.Context) (*answer, error) {
					return w.send(w.owner.request(t, "POST /users", body, key).WithContext(ctx))
				}
				if leaves {
					ctx, leave := context.WithTimeout(t.Context(), rand.N(6*time.Millisecond))
					_, err := create(ctx)
					if leave(); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
					w.leaveDuringPatch(t, target)
				}
				a, err := create(t.Context())
				if err != nil || a.status != 201 {
					t.Errorf("%v, %+v", err, a)
					return
				}
				pair := fmt.Sprintf("%d-%d", worker, i%2)
				change, err := w.owner.try(t, "PATCH /users/"+target, `{"metadata":{"`+pair+`":"kept"}}`)
				if err != nil || change.status != 200 {
					t.Errorf("%v, %+v", err, change)
					return
				}
				mu.Lock()
				acknowledged[a.text("/id")] = true
				changes = append(changes, pair)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	there := w.owner.readAll(t, "/users?limit=200")
	if len(there) != workers*each+2 || len(acknowledged) != len(there) {
		t.Errorf("%d users are there and %d were acknowledged, of %d", len(there), len(acknowledged), workers*each+2)
	}
	for _, id := range there {
		if !acknowledged[id] {
			t.Errorf("%s is there and was never acknowledged", id)
		}
	}
	kept := w.owner.do(t, "GET /users/"+target, "").expect(t, 200).members("/metadata")
	if slices.Sort(changes); !slices.Equal(slices.Compact(changes), slices.DeleteFunc(kept, func(key string) bool { return key == "left" })) {
		t.Errorf("of the changes %q the user has %q", changes, kept)
	}
}

// leaveDuringPatch sends a change of the user and disconnects after at most 4 milliseconds.
func (w *world) leaveDuringPatch(t *testing.T, target string) {
	ctx, leave := context.WithTimeout(t.Context(), rand.N(4*time.Millisecond))
	defer leave()
	a, err := w.send(w.owner.request(t, "PATCH /users/"+target, fmt.Sprintf(`{"metadata":{"left":"%d"}}`, rand.Int())).WithContext(ctx))
	if err == nil && a.status != 200 || err != nil && ctx.Err() == nil {
		t.Errorf("%v, %+v", err, a)
	}
}
