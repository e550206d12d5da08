package floor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// variable is the environment variable that Start sets in the process that it starts.
const variable = "ROLECALL_BENCH_FLOOR"

// Copy copies the users of Rolecall's database into a separate table for the minimal server, and
// returns the value for Options.Database. If source is a SQLite file, the table is in the new file.
// If source is the URL of a PostgreSQL database, the table is in the same database, and Copy
// ignores file. The URL must be that of an administrator.
func Copy(ctx context.Context, source, file string) (database string, err error) {
	if isPostgres(source) {
		return source, copyPostgres(ctx, source)
	}
	return file, copySQLite(ctx, source, file)
}

// Process is a minimal server in a separate process.
type Process struct {
	Address    string // host and port of the server
	command    *exec.Cmd
	input      io.Closer
	complaints bytes.Buffer
}

// Start starts a minimal server in a separate process and waits until the server answers. The
// server ends at the latest when this process ends. The process runs the same executable, so the
// program must call Serve first in main.
func Start(o Options) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	options, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p := &Process{command: exec.Command(self)}
	p.command.Env = append(os.Environ(), variable+"=1")
	p.command.Stderr = &p.complaints
	input, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.input = input
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	_, writeErr := input.Write(append(options, '\n'))
	line, readErr := bufio.NewReader(output).ReadString('\n')
	if err := errors.Join(writeErr, readErr); err != nil {
		return nil, errors.Join(errors.New("the floor does not start"), err, p.Stop())
	}
	p.Address = strings.TrimSuffix(line, "\n")
	return p, nil
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Stop ends the process.
func (p *Process) Stop() error {
	err := p.input.Close()
	if waitErr := p.command.Wait(); waitErr != nil {
		return errors.Join(err, fmt.Errorf("floor: %w\n%s", waitErr, p.complaints.Bytes()))
	}
	return err
}

// Serve runs the minimal server and ends the process if Start has started this process. Otherwise,
// Serve does nothing. A program that calls Start must call Serve first in main.
func Serve() {
	if os.Getenv(variable) == "" {
		return
	}
	if err := serveApart(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveApart serves with the options in the first line of standard input, until standard input
// ends.
func serveApart() error {
	// An interrupt from the terminal reaches this process too. This process ignores it,
	// because the process that started it decides when it ends.
	signal.Ignore(syscall.SIGINT)
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return err
	}
	var o Options
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	inputEnded := make(chan error, 1)
	go func() {
		defer cancel()
		_, err := io.Copy(io.Discard, input)
		inputEnded <- err
	}()
	if err := serve(ctx, o, func(address string) { fmt.Println(address) }); err != nil {
		return err
	}
	return <-inputEnded
}
