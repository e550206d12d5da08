package faults

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

// writing are the system calls that write to the log of SQLite, sync the disk, and send the
// response. The value is the step between two tested calls without -full.
var writing = map[string]int{"pwrite64": 4, "fsync,fdatasync": 1, "write": 1}

// TestKillAtSystemCalls kills the program at a system call of a creation or a change:
// at the first call of a kind, then at the second, and so on, until a request is
// answered. The program thus dies before, during and after the commit. Each change is
// made once with its event or not at all, and a repeat of the request makes it once.
func TestKillAtSystemCalls(t *testing.T) {
	alongside(t)
	needTool(t, "strace")
	s := serve(t, filepath.Join(t.TempDir(), "rolecall.db"))
	l := newLoad(t, s)
	l.spread = 1
	l.open()
	l.tenants[0].someUser()
	for name, act := range map[string]func(*tenant) (answered bool, repeat func() (was bool)){"create": createOnce, "change": changeOnce} {
		found := map[string]int{} // how often the program died at which point
		for calls, step := range writing {
			for call := 1; l.dieAtCall(calls, call, act, found); call += times(step, 1) {
			}
		}
		// The Go runtime also writes, to wake a thread that waits. So the first death at a write can be on the
		// other side of the commit, and another attempt follows.
		if !patience.Poll(func() bool {
			if found["pwrite64: before the commit"] > 0 && found["write: after the commit"] > 0 {
				return true
			}
			l.dieAtCall("pwrite64", 1, act, found)
			l.dieAtCall("write", 1, act, found)
			return false
		}) {
			t.Errorf("%s: the deaths were all on one side of the commit", name)
		}
		t.Logf("%s: killed %v", name, found)
	}
	l.finish()
	l.report("killed at system calls")
}

// dieAtCall kills the program at the nth of these system calls while act runs, and starts it again. It
// counts the point of the death in found. It returns false if there were fewer calls.
func (l *load) dieAtCall(calls string, nth int, act func(*tenant) (answered bool, repeat func() (was bool)), found map[string]int) bool {
	l.t.Helper()
	detach := killAtCall(l.t, l.server.PID(), calls, nth)
	answered, repeat := act(l.tenants[0])
	detach()
	if answered && l.tenants[0].owner.send("GET /livez", "").status == http.StatusOK { // otherwise, it died at a later write, such as a number of the change feed
		return false
	}
	if err := l.server.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		l.t.Fatalf("the program was to be killed: %v", err)
	}
	l.client.CloseIdleConnections()
	start(l.t, l.server)
	switch {
	case answered:
		found[calls+": after the answer"]++
	case repeat():
		found[calls+": after the commit"]++
	default:
		found[calls+": before the commit"]++
	}
	return true
}

// createOnce creates a user. If the request is not answered, repeat repeats it, and reports whether
// the first request had created the user.
func createOnce(tn *tenant) (answered bool, repeat func() (was bool)) {
	c := tn.newCreation("")
	if of := tn.tryCreate(c); of.status == http.StatusCreated {
		tn.make(c, of)
		return true, nil
	}
	return false, func() bool {
		again := tn.tryCreate(c)
		if again.status != http.StatusCreated {
			tn.load.t.Fatalf("the repeat answered %d: %s", again.status, again.body)
		}
		tn.make(c, again)
		return again.header.Get("Idempotent-Replayed") != ""
	}
}

// changeOnce changes an existing user. If the request is not answered, repeat reads the user, and
// reports whether the change was made.
func changeOnce(tn *tenant) (answered bool, repeat func() (was bool)) {
	id, mark := tn.someUser(), fmt.Sprint(tn.marks.Add(1))
	change := func(s *userState) { s.mark = mark }
	if tn.patch(id, nil, `{"metadata":{"mark":`+quoted(mark)+`}}`, change) != nil {
		return true, nil
	}
	return false, func() bool {
		seen := tn.read(id)
		return seen != nil && seen.mark == mark
	}
}

// someUser returns the id of a user other than a guest. It creates this user at the first call.
func (tn *tenant) someUser() (id string) {
	for id, address := range tn.known {
		if address == "anybody@faults.example" {
			return id
		}
	}
	c := tn.newCreation("anybody@faults.example")
	of := tn.tryCreate(c)
	if of.status != http.StatusCreated {
		tn.load.t.Fatalf("a user could not be made: %d %s", of.status, of.body)
	}
	return tn.make(c, of).ID
}

// needTool skips the test if the tool is not installed, unless CI is set.
func needTool(t *testing.T, tool string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("there is no %s", tool)
	}
	t.Skipf("NOT TESTED: there is no %s", tool)
}

// killAtCall makes the process die at the nth of these system calls from now on, unless detach is
// called first.
func killAtCall(t *testing.T, pid int, calls string, nth int) (detach func()) {
	t.Helper()
	return tamper(t, pid, calls, fmt.Sprintf("signal=KILL:when=%d", nth))
}

// detachPause is how long a tracer may take to exit before it is killed. A tracer sometimes waits
// for threads that have already ended. The kill also detaches it.
const detachPause = 5 * time.Second

// tamper applies the effect, in the syntax of strace, to these system calls of the
// process until detach is called.
func tamper(t *testing.T, pid int, calls, effect string) (detach func()) {
	t.Helper()
	inject := "inject=" + calls + ":" + effect
	ctx, callOff := context.WithCancel(context.WithoutCancel(t.Context()))
	tracer := exec.CommandContext(ctx, "strace", "-f", "-o", os.DevNull, "-p", fmt.Sprint(pid), "-e", "trace="+calls, "-e", inject)
	tracer.Cancel = func() error { return tracer.Process.Signal(syscall.SIGTERM) }
	tracer.WaitDelay = detachPause
	messages, err := tracer.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tracer.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(messages)
	for lines.Scan() && !strings.Contains(lines.Text(), "attached") {
		t.Logf("strace: %s", lines.Text())
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
		}
	}()
	return func() {
		callOff()
		<-drained
		_ = tracer.Wait() // it exits like the traced process, or by the signal
	}
}
