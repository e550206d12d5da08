// Package patience has the one limit of all waits in tests. It is needed only against hanging: a
// slow machine must not fail a test.
package patience

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// Variable is the environment variable with the factor of Limit, such as 3 on a slow machine. It
// is 1 by default.
const Variable = "ROLECALL_TEST_PATIENCE"

// Limit is the time after which a wait counts as hanging. Nothing that works takes so long.
var Limit = time.Duration(factor() * float64(time.Minute))

// factor returns the number in Variable. It panics if the variable has no positive number.
func factor() float64 {
	text := os.Getenv(Variable)
	if text == "" {
		return 1
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || number <= 0 {
		panic(fmt.Sprintf("%s=%s: must be a positive number", Variable, text))
	}
	return number
}

// Poll calls done every 5 milliseconds until it returns true, for at most Limit. It reports whether
// done returned true. Poll pauses between the calls, because other tests need the processor.
func Poll(done func() bool) bool {
	retry, deadline := time.NewTicker(5*time.Millisecond), time.After(Limit)
	defer retry.Stop()
	for !done() {
		select {
		case <-deadline:
			return false
		case <-retry.C:
		}
	}
	return true
}
