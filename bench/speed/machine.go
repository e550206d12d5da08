package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc on Linux, independent of the kernel's
// configuration.
const tick = 10 * time.Millisecond

// cpu is used CPU time. It is zero if the system does not report it.
type cpu struct {
	processes time.Duration // by the selected processes
	machine   time.Duration // by all processes
}

// measureCPU returns the CPU time that the processes with these ids and their descendants
// have used.
func measureCPU(roots ...int) (c cpu, err error) {
	all, err := readProcesses()
	if err != nil || len(all) == 0 {
		return c, err
	}
	for _, id := range all.from(roots...) {
		c.processes += all[id].spent
	}
	c.machine, err = machineCPU()
	return c, err
}

// processes are the processes of the machine, by id.
type processes map[int]struct {
	parent int
	spent  time.Duration // of CPU
}

// readProcesses returns the processes of the machine. It returns an empty map if the system does
// not report them.
func readProcesses() (processes, error) {
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	all := processes{}
	for _, entry := range entries {
		content, err := os.ReadFile(entry)
		if err != nil {
			continue // it has just ended
		}
		id, parent, ticks, err := parseStat(string(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry, err)
		}
		p := all[id]
		p.parent, p.spent = parent, time.Duration(ticks)*tick
		all[id] = p
	}
	return all, nil
}

// from returns the ids of the running roots and of their descendants.
func (all processes) from(roots ...int) (ids []int) {
	for id := range all {
		for at := id; at > 1; at = all[at].parent {
			if slices.Contains(roots, at) {
				ids = append(ids, id)
				break
			}
		}
	}
	return ids
}

// parseStat parses the content of /proc/PID/stat. ticks is the CPU time of the process and of its
// children that have ended, in units of tick.
func parseStat(line string) (id, parent, ticks int, err error) {
	name := strings.LastIndexByte(line, ')') // the name may contain blanks
	fields := strings.Fields(line[name+1:])
	number, _, _ := strings.Cut(line, " ")
	if name < 0 || len(fields) < 15 {
		return 0, 0, 0, errors.New("not a line of a process")
	}
	var errs []error
	read := func(text string) int {
		n, err := strconv.Atoi(text)
		errs = append(errs, err)
		return n
	}
	id, parent = read(number), read(fields[1])
	for _, field := range fields[11:15] {
		ticks += read(field)
	}
	return id, parent, ticks, errors.Join(errs...)
}

// machineCPU returns the CPU time of all processes since the machine started.
func machineCPU() (time.Duration, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(content), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 {
		return 0, errors.New("/proc/stat has no line of all processors")
	}
	total := 0
	for _, i := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq: without idle time and time of other virtual machines
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return 0, err
		}
		total += n
	}
	return time.Duration(total) * tick, nil
}

// memoryOf returns the memory of a process and of its descendants in bytes. The function memory
// returns that of one process.
func memoryOf(root int, memory func(pid int) (int64, error)) (total int64, err error) {
	all, err := readProcesses()
	if err != nil {
		return 0, err
	}
	for _, id := range all.from(root) {
		bytes, err := memory(id)
		if err != nil {
			return 0, err
		}
		total += bytes
	}
	return total, nil
}

func residentMemory(pid int) (int64, error) { return memory(pid, "VmRSS:") }

func peakMemory(pid int) (int64, error) { return memory(pid, "VmHWM:") }

// memory returns the value of a line of /proc/PID/status in bytes. It returns zero if the system is
// not Linux and has no such file.
func memory(pid int, name string) (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, fs.ErrNotExist) && runtime.GOOS != "linux" {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			kilobytes, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, name)
}

// machine describes the machine of the measurement.
type machine struct {
	Processor string
	Cores     int
	System    string
	Go        string
	Sync      float64 // milliseconds for a page to reach the disk
}

func describeMachine(folder string) (m machine, err error) {
	m = machine{Processor: "unknown", Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	if content, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(content)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				m.Processor = strings.TrimSpace(value)
				break
			}
		}
	}
	took, err := syncTime(folder)
	m.Sync = milliseconds(took)
	return m, err
}

// syncTime returns the median time to write and sync a page of 8 KiB to the disk. Every
// durable commit waits for this.
func syncTime(folder string) (_ time.Duration, err error) {
	file, err := os.Create(filepath.Join(folder, "sync"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	var took []time.Duration
	page := make([]byte, 8<<10)
	for range 100 {
		begun := time.Now()
		if _, err := file.Write(page); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
