package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Each database server can use shareQuota of every sharePeriod of the first processor: 30 %. Three
// servers leave a tenth of this processor to the system.
const (
	sharePeriod = 20 * time.Millisecond
	shareQuota  = 6 * time.Millisecond
)

// shares distributes the processors. The database servers run on the first processor, each with the
// same share. This process and the processes that it starts later run on the other processors.
type shares struct {
	groups  []string // folders of control groups
	problem error    // why the servers have no shares
}

// processors is the number of processors, before shares excludes this process from the first.
var processors = runtime.NumCPU()

// give distributes the processors to the servers with these ids. If the system does not
// permit this, String returns the reason.
func (s *shares) give(ctx context.Context, servers []int) error {
	all, err := readProcesses()
	if err != nil {
		return err
	}
	if len(all) == 0 || processors < 2 {
		s.problem = errors.New("this needs Linux and two processors")
		return nil
	}
	s.problem = pin(ctx, fmt.Sprintf("1-%d", processors-1), os.Getpid())
	for _, server := range servers {
		family := all.from(server)
		s.problem = errors.Join(s.problem, s.limit(family), pin(ctx, "0", family...))
	}
	return nil
}

// pin restricts all threads of the processes to the processors in the list on, such as 1-3.
func pin(ctx context.Context, on string, processes ...int) error {
	for _, id := range processes {
		output, err := exec.CommandContext(ctx, "taskset", "--all-tasks", "--cpu-list", "--pid", on, strconv.Itoa(id)).CombinedOutput()
		if err != nil && syscall.Kill(id, 0) == nil { // taskset fails for a process that has just ended
			return fmt.Errorf("taskset: %w: %s", err, output)
		}
	}
	return nil
}

// limit puts the processes into a new control group that limits their CPU time to a share.
func (s *shares) limit(processes []int) error {
	const groups = "/sys/fs/cgroup"
	parent, settings := filepath.Join(groups, "cpu"), map[string]string{ // version 1 of control groups
		"cpu.cfs_period_us": fmt.Sprint(sharePeriod.Microseconds()), "cpu.cfs_quota_us": fmt.Sprint(shareQuota.Microseconds()),
	}
	if _, err := os.Stat(filepath.Join(groups, "cgroup.controllers")); err == nil {
		parent, settings = groups, map[string]string{"cpu.max": fmt.Sprint(shareQuota.Microseconds(), sharePeriod.Microseconds())}
		if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+cpu"), 0); err != nil {
			return err
		}
	}
	group := filepath.Join(parent, fmt.Sprintf("rolecall-bench-%d", processes[0]))
	if err := os.Mkdir(group, 0o700); err != nil {
		return err
	}
	s.groups = append(s.groups, group)
	for name, value := range settings {
		if err := os.WriteFile(filepath.Join(group, name), []byte(value), 0); err != nil {
			return err
		}
	}
	for _, id := range processes {
		err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(id)), 0)
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// remove removes the control groups. The servers must have ended.
func (s *shares) remove() (err error) {
	for _, group := range s.groups {
		var removeErr error
		for range 50 { // until the last process has left
			if removeErr = syscall.Rmdir(group); !errors.Is(removeErr, syscall.EBUSY) {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		err = errors.Join(err, removeErr)
	}
	return err
}

func (s *shares) String() string {
	if s.problem != nil {
		return fmt.Sprintf("The processors were not shared out: %v.", s.problem)
	}
	return fmt.Sprintf("Each database server had %.0f %% of the first processor. Rolecall and its clients had the others.",
		100*shareQuota.Seconds()/sharePeriod.Seconds())
}
