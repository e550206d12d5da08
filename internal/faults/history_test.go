package faults

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/rolecall/rolecall/internal/patience"
)

// step is the effect of an operation on a state. It returns the possible next states. It returns no
// state if the operation cannot have had its result in this state.
type step[S comparable] func(S) []S

// only returns the next state if the operation is possible, and otherwise no state.
func only[S comparable](may bool, next S) []S {
	if !may {
		return nil
	}
	return []S{next}
}

// either returns the step of an operation with an unknown outcome. The operation may have had its
// effect or not.
func either[S comparable](effect step[S]) step[S] {
	return func(s S) []S { return append(effect(s), s) }
}

// register records the operations on objects, by the key of the object. Each object has one state.
type register[S comparable] struct {
	name string
	mu   sync.Mutex
	ops  map[string][]porcupine.Operation
}

func newRegister[S comparable](name string) *register[S] {
	return &register[S]{name: name, ops: map[string][]porcupine.Operation{}}
}

// done is an operation: its step and its text in a history.
type done[S comparable] struct {
	step step[S]
	text string
}

// add records an operation, unless its request was never sent. An operation with an unknown outcome
// may take effect at any time until the end of the history.
func (r *register[S]) add(key string, of result, step step[S], format string, args ...any) {
	end := of.end
	switch {
	case !of.known:
		end = math.MaxInt64
	case of.status == 0:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops[key] = append(r.ops[key], porcupine.Operation{Input: done[S]{step, fmt.Sprintf("%d ", of.status) + fmt.Sprintf(format, args...)}, Call: of.start, Return: end})
}

// wrong checks linearizability: whether the operations on each object have an order,
// each between its call and its response, that explains all results. It returns the
// histories that have no such order, or for which none was found in time.
func (r *register[S]) wrong() (histories []string) {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{*new(S)} },
		Step: func(state, input, _ any) (next []any) {
			for _, s := range input.(done[S]).step(state.(S)) {
				next = append(next, s)
			}
			return next
		},
	}
	deterministic := model.ToModel()
	for key, ops := range r.ops {
		if verdict := porcupine.CheckOperationsTimeout(deterministic, ops, patience.Limit); verdict != porcupine.Ok {
			histories = append(histories, fmt.Sprintf("the history of %s %s is %s:\n%s", r.name, key, strings.ToLower(string(verdict)), formatted[S](ops)))
		}
	}
	return histories
}

// check fails the test for each wrong history. It returns the number of histories, and the number
// of wrong histories.
func (r *register[S]) check(t testing.TB) (checked, refuted int) {
	t.Helper()
	histories := r.wrong()
	for _, history := range histories {
		t.Error(history)
	}
	return len(r.ops), len(histories)
}

// formatted formats a history, one line per operation, with times in microseconds from the
// first call.
func formatted[S comparable](ops []porcupine.Operation) string {
	var b strings.Builder
	first := int64(math.MaxInt64)
	for _, op := range ops {
		first = min(first, op.Call)
	}
	for _, op := range ops {
		end := "open"
		if op.Return != math.MaxInt64 {
			end = fmt.Sprint((op.Return - first) / 1000)
		}
		fmt.Fprintf(&b, "%9d %9s  %s\n", (op.Call-first)/1000, end, op.Input.(done[S]).text)
	}
	return b.String()
}
