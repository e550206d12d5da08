package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/auditlog"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/store"
)

type eventCommands struct {
	Verify eventsVerify `cmd:"" help:"Verify that no event of a tenant, or of the operators' log, was changed, removed or inserted. Exit code 3: the log does not verify."`
}

type eventsVerify struct {
	Tenant     string     `xor:"log" required:"" placeholder:"NAME" help:"Name of the tenant."`
	Operators  bool       `xor:"log" required:"" help:"Verify the operators' log: operator keys created and revoked, and tenants created and deleted."`
	Checkpoint []string   `sep:"none" placeholder:"FILE" help:"Also verify that the log begins with the events of this checkpoint, from GET /events/checkpoint or GET /operator/events/checkpoint, and that the deletion of old events agrees with it. Can be repeated."`
	Kept       keepEvents `placeholder:"DURATION" help:"How long events must be kept at least, such as 90d. Report deleted events that are younger. Default: as the settings of the tenant in the log say."`
}

// errTampered is the error of a command whose report says that the audit log does not verify.
var errTampered = errors.New("the audit log does not verify")

// verifiedLog is the JSON output of events verify.
type verifiedLog struct {
	Verified bool         `json:"verified"`
	Size     int64        `json:"size"`
	Root     string       `json:"root"`
	Removed  int64        `json:"removed"`
	Pending  int64        `json:"pending"`
	OldKeys  int          `json:"oldKeys"`
	Problems []logProblem `json:"problems"`
}

type logProblem struct {
	Kind   auditlog.Kind    `json:"kind"`
	Number int64            `json:"number"`
	Event  rolecall.EventID `json:"event,omitzero"`
	Detail string           `json:"detail"`
}

func (p *logProblem) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-9s", p.Kind)
	if p.Number > 0 {
		fmt.Fprintf(&b, " number %d", p.Number)
	}
	if !p.Event.IsZero() {
		fmt.Fprintf(&b, " event %s", p.Event)
	}
	return b.String() + ": " + p.Detail
}

// Run verifies the log and prints each problem.
func (c *eventsVerify) Run(ctx context.Context, p *program) error {
	var notes [][]byte
	for _, file := range c.Checkpoint {
		note, err := savedNote(file)
		if err != nil {
			return err
		}
		notes = append(notes, note)
	}
	return p.operate(ctx, func(n *node.Node) error {
		var tenant rolecall.Tenant // zero: the operators' log
		if !c.Operators {
			err := n.Access.Store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
				tenant, err = tx.TenantByName(c.Tenant)
				return err
			})
			if errors.Is(err, rolecall.ErrNotFound) {
				return fmt.Errorf("there is no tenant %s", c.Tenant)
			} else if err != nil {
				return err
			}
		}
		report, err := n.Access.AuditLog.Verify(ctx, auditlog.Verification{Tenant: tenant, Notes: notes, Kept: time.Duration(c.Kept)})
		if err != nil {
			return err
		}
		return c.print(p, &report)
	})
}

// savedNote returns the signed note of the file. The file has the note, or the response of GET
// /events/checkpoint.
func savedNote(file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--checkpoint: %w", err)
	}
	var response struct {
		Note string `json:"note"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		if err := json.Unmarshal(content, &response); err != nil || response.Note == "" {
			return nil, fmt.Errorf("--checkpoint: %s is neither a signed note nor a response of GET /events/checkpoint", file)
		}
		content = []byte(response.Note)
	}
	if content = bytes.TrimRight(content, "\n"); len(content) == 0 {
		return nil, fmt.Errorf("--checkpoint: %s is empty", file)
	}
	return append(content, '\n'), nil // jq and editors add empty lines
}

func (c *eventsVerify) print(p *program, report *auditlog.Report) error {
	log := &report.Log
	result := verifiedLog{
		Verified: len(report.Problems) == 0, Size: log.Size, Root: auditlog.RootText(log), Removed: log.Removed, Pending: report.Pending, OldKeys: report.OldKeys, Problems: []logProblem{},
	}
	var lines []string
	for _, problem := range report.Problems {
		found := logProblem(problem)
		result.Problems, lines = append(result.Problems, found), append(lines, found.line())
	}
	about := fmt.Sprintf("Events in the audit log of tenant %s: %d.", c.Tenant, log.Size)
	if c.Operators {
		about = fmt.Sprintf("Events in the log of the operators: %d.", log.Size)
	}
	if log.Removed > 0 {
		about += fmt.Sprintf(" Events 1 to %d were deleted because of their age.", log.Removed)
	}
	if report.Pending > 0 {
		about += fmt.Sprintf(" Not in the log yet, and not compared: %d.", report.Pending)
	}
	lines = append(lines, about)
	if report.OldKeys > 0 {
		lines = append(lines, fmt.Sprintf("Checkpoints with another signing key: %d. A new key began after them, for example after the loss of all instance keys. Their events were compared.", report.OldKeys))
	}
	switch {
	case !result.Verified:
		lines = append(lines, fmt.Sprintf("The log does NOT verify. Problems: %d.", len(report.Problems)))
	case len(c.Checkpoint) > 1:
		lines = append(lines, "The log verifies, and begins with the events of the checkpoints.")
	case len(c.Checkpoint) == 1:
		lines = append(lines, "The log verifies, and begins with the events of the checkpoint.")
	default:
		lines = append(lines, "The log verifies.")
	}
	if err := p.print(result, lines...); err != nil {
		return err
	}
	if !result.Verified {
		return errTampered
	}
	return nil
}
