package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rolecall/rolecall/bench/load"
	"github.com/rolecall/rolecall/internal/pgtest"
)

const (
	citusTenants = 32 // enough that each worker has about the same number
	citusUsers   = 100
	citusCrowd   = 16 // connections
	citusWindows = 3  // the median of them counts
)

// citusReport contains the costs of operations on one PostgreSQL server and on clusters.
type citusReport struct {
	Machine machine
	Shares  string // how the processors were distributed
	Rows    []citusRow
}

// citusRow is one operation on one cluster. The costs are microseconds of CPU per response.
type citusRow struct {
	Operation   string
	Workers     int     // zero: one PostgreSQL server
	Rate        float64 // correct responses per second
	Coordinator float64 // of the coordinator, or of the one server
	EachWorker  []float64
	Rolecall    float64
	Others      float64 // cores that other processes used
}

// cluster is a database on one or several PostgreSQL servers, with the program that uses it.
type cluster struct {
	*subject
	servers    []*pgtest.Server // the coordinator first
	shares     *shares
	stop       func() error // stops the servers
	operations []*operation
}

// compareClusters measures what it costs to read and to create a user on one PostgreSQL
// server, and on a coordinator with one and with two workers. Each server has the same
// share of a processor, where the system permits that.
func compareClusters(ctx context.Context, o options, m machine, binary, folder string) error {
	r := &citusReport{Machine: m}
	for workers := range 3 {
		if err := r.measureCluster(ctx, o, workers, binary, filepath.Join(folder, fmt.Sprint("workers-", workers))); err != nil {
			return fmt.Errorf("%s: %w", clusterName(workers), err)
		}
	}
	if o.json {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	return r.write(os.Stdout)
}

func clusterName(workers int) string {
	return [...]string{"one PostgreSQL server", "coordinator and one worker", "coordinator and two workers"}[workers]
}

func (r *citusReport) measureCluster(ctx context.Context, o options, workers int, binary, folder string) (err error) {
	fmt.Fprintln(os.Stderr, "speed: filling", clusterName(workers))
	c := &cluster{subject: &subject{folder: folder}, shares: new(shares), stop: func() error { return nil }}
	c.Binary = binary
	defer func() { err = errors.Join(err, c.close(), c.stop(), c.shares.remove()) }()
	if err := c.fill(ctx, workers); err != nil {
		return err
	}
	var servers []int
	for _, server := range c.servers {
		id, err := server.PID()
		if err != nil {
			return err
		}
		servers = append(servers, id)
	}
	if err := c.shares.give(ctx, servers); err != nil {
		return err
	}
	r.Shares = c.shares.String()
	if err := c.plan(ctx); err != nil {
		return err
	}
	for _, op := range c.operations {
		fmt.Fprintf(os.Stderr, "speed: measuring %s\n", op.title)
		row, err := c.measure(ctx, o, op, servers)
		if err != nil {
			return fmt.Errorf("%s: %w", op.title, err)
		}
		row.Workers = workers
		r.Rows = append(r.Rows, *row)
	}
	return nil
}

// fill starts the servers and the program, creates the tenants, and stops the program.
func (c *cluster) fill(ctx context.Context, workers int) error {
	database, err := c.startServers(ctx, workers)
	if err != nil {
		return err
	}
	if err := c.open(ctx, database+"&pool_max_conns="+fmt.Sprint(citusCrowd)); err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	for n := range citusTenants {
		if err := c.makeTenant(ctx, citusTenant(n)); err != nil {
			return err
		}
	}
	return c.Stop()
}

// startServers starts the servers and returns the URL of an empty database.
func (c *cluster) startServers(ctx context.Context, workers int) (database string, err error) {
	if workers == 0 {
		server, err := pgtest.Start(pgtest.Production...)
		if err != nil {
			return "", err
		}
		c.servers, c.stop = []*pgtest.Server{server}, server.Stop
		return server.NewDatabase(ctx, "rolecall")
	}
	servers, err := pgtest.StartCluster(workers, append([]string{"citus.shard_count=12"}, pgtest.Production...)...)
	if err != nil {
		return "", err
	}
	c.servers, c.stop = append([]*pgtest.Server{servers.Coordinator}, servers.Workers...), servers.Stop
	return servers.NewDatabase(ctx, "rolecall")
}

func citusTenant(n int) string { return fmt.Sprintf("bench-%02d", n) }

func (c *cluster) makeTenant(ctx context.Context, name string) error {
	if _, err := c.Run(ctx, password, "tenant", "create", name, "--owner-email", address(0), "--owner-name", "Owner", "--password-stdin"); err != nil {
		return err
	}
	session, _, err := c.signInTo(ctx, name, 0)
	if err != nil {
		return err
	}
	filled, err := load.RunApart(ctx, load.Plan{
		Address: c.Address, Connections: citusCrowd, Duration: time.Minute, Limit: citusUsers,
		Requests: ofTenant(name, creations([]string{session})), Status: http.StatusCreated,
	})
	if err != nil {
		return err
	}
	return filled.Err()
}

// ofTenant returns the requests with the name of another tenant in the header.
func ofTenant(name string, requests []string) (list []string) {
	const header = "\r\nX-Tenant-Schema: "
	for _, request := range requests {
		list = append(list, strings.Replace(request, header+tenant+"\r\n", header+name+"\r\n", 1))
	}
	return list
}

// plan starts the program and creates the requests of each operation, with the tenants in
// turn.
func (c *cluster) plan(ctx context.Context) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	var reads, creates [][]string
	for n := range citusTenants {
		name := citusTenant(n)
		session, _, err := c.signInTo(ctx, name, 0)
		if err != nil {
			return err
		}
		ids, err := userIDs(ctx, c.Address, name, session)
		if err != nil {
			return err
		}
		var gets []string
		for _, id := range ids {
			gets = append(gets, get("/users/"+id, session))
		}
		reads = append(reads, ofTenant(name, gets))
		creates = append(creates, ofTenant(name, creations([]string{session})))
	}
	c.operations = []*operation{
		{name: "read", title: titles["read"], requests: inTurn(reads), status: http.StatusOK},
		{name: "create", title: titles["create"], requests: inTurn(creates), status: http.StatusCreated},
	}
	for _, op := range c.operations {
		if _, err := op.measureAnswer(ctx, c.Address); err != nil {
			return err
		}
	}
	return nil
}

// inTurn returns the first element of each list, then the second element of each list, and so on.
func inTurn(lists [][]string) (all []string) {
	for i := range lists[0] {
		for _, list := range lists {
			if i < len(list) {
				all = append(all, list[i])
			}
		}
	}
	return all
}

// measure measures an operation in several windows. It returns the window with the median CPU time
// of the servers per response.
func (c *cluster) measure(ctx context.Context, o options, op *operation, servers []int) (*citusRow, error) {
	plan := load.Plan{
		Address: c.Address, Connections: citusCrowd, Duration: 6 * time.Second,
		Requests: op.requests, Status: op.status, AtLeast: op.atLeast,
	}
	if o.full {
		plan.Duration = 30 * time.Second
	}
	// The first window is not counted. In it, every connection still plans its
	// statements and reads the metadata of Citus.
	if _, err := c.window(ctx, plan, servers); err != nil {
		return nil, err
	}
	var rows []citusRow
	for range citusWindows {
		if err := c.LogFile.Truncate(0); err != nil {
			return nil, err
		}
		row, err := c.window(ctx, plan, servers)
		if err != nil {
			return nil, err
		}
		row.Operation = op.title
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b citusRow) int { return cmp.Compare(a.database(), b.database()) })
	return &rows[len(rows)/2], nil
}

// database returns the CPU time of all servers per response.
func (r *citusRow) database() float64 {
	total := r.Coordinator
	for _, worker := range r.EachWorker {
		total += worker
	}
	return total
}

func (c *cluster) window(ctx context.Context, plan load.Plan, servers []int) (*citusRow, error) {
	roots := append(slices.Clone(servers), c.PID())
	begun := time.Now()
	before, machineBefore, err := cpuOfEach(roots)
	if err != nil {
		return nil, err
	}
	got, err := load.RunApart(ctx, plan)
	if err == nil {
		err = got.Err()
	}
	if err != nil {
		return nil, err
	}
	after, machineAfter, err := cpuOfEach(roots)
	if err != nil {
		return nil, err
	}
	others := machineAfter - machineBefore - got.Spent
	var costs []float64
	for i := range roots {
		spent := after[i] - before[i]
		others -= spent
		costs = append(costs, microseconds(spent)/float64(got.Right))
	}
	last := len(servers)
	return &citusRow{
		Rate: got.PerSecond(), Coordinator: costs[0], EachWorker: costs[1:last], Rolecall: costs[last],
		Others: max(0, others).Seconds() / time.Since(begun).Seconds(),
	}, nil
}

// cpuOfEach returns the CPU time that each of the processes has used, including its descendants,
// and the CPU time of all processes of the machine.
func cpuOfEach(roots []int) (each []time.Duration, machine time.Duration, err error) {
	for _, root := range roots {
		c, err := measureCPU(root)
		if err != nil {
			return nil, 0, err
		}
		each, machine = append(each, c.processes), c.machine
	}
	return each, machine, nil
}

func (r *citusReport) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	most := 0.0
	for _, row := range r.Rows {
		most = max(most, row.Others)
	}
	fmt.Fprintf(w, "%s\n%s\nOther work on the machine took up to %.2f cores during the measurement.\n\n", r.Machine.String(), r.Shares, most)
	fmt.Fprintln(w, "µs of CPU for each answer\t\tcoordinator\teach worker\tall servers\tRolecall\trate")
	for _, row := range r.Rows {
		workers := strings.Trim(fmt.Sprintf("%.0f", row.EachWorker), "[]")
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%s\t%.0f\t%.0f\t%s\n",
			row.Operation, clusterName(row.Workers), row.Coordinator, workers, row.database(), row.Rolecall, rate(row.Rate))
	}
	return w.Flush()
}
