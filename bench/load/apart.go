package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// variable is the environment variable that RunApart sets in the process that it
// starts.
const variable = "ROLECALL_BENCH_LOAD"

// RunApart runs the plan in a separate process, with one thread for all connections, so that memory
// and scheduling of the two processes do not affect each other. The process runs the same
// executable, so the program must call Serve first in main.
func RunApart(ctx context.Context, plan Plan) (*Result, error) {
	input, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var output, complaints bytes.Buffer
	command := exec.CommandContext(ctx, self)
	command.Env = append(os.Environ(), variable+"=1", "GOMAXPROCS=1", "GOGC=400")
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &output, &complaints
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("load: %w\n%s", err, complaints.Bytes())
	}
	result := new(Result)
	if err := json.Unmarshal(output.Bytes(), result); err != nil {
		return nil, fmt.Errorf("load: %w: the program does not call load.Serve first", err)
	}
	result.Spent = command.ProcessState.SystemTime() + command.ProcessState.UserTime()
	return result, nil
}

// Serve runs the plan and ends the process if RunApart has started this process. Otherwise, Serve
// does nothing. A program that calls RunApart must call Serve first in main, and a test must call
// it in TestMain.
func Serve() {
	if os.Getenv(variable) == "" {
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve() error {
	// An interrupt from the terminal reaches this process too. This process ignores it,
	// because the process that started it decides when it ends.
	signal.Ignore(syscall.SIGINT)
	var plan Plan
	if err := json.NewDecoder(os.Stdin).Decode(&plan); err != nil {
		return err
	}
	result, err := Run(context.Background(), plan)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
