package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
)

type operatorKeyCommands struct {
	Create operatorKeyCreate `cmd:"" help:"Make a key and print it, once."`
	List   operatorKeyList   `cmd:"" help:"List the keys, without what bears them."`
	Revoke operatorKeyRevoke `cmd:"" help:"End a key at once."`
}

type operatorKeyCreate struct {
	Name    string   `arg:"" help:"What the key is for, to tell it from others."`
	Expires days     `default:"90d" placeholder:"DURATION" help:"How long the key works, at most 366d. Default: ${default}"`
	Tenant  []string `placeholder:"NAME" help:"Tenant that the key is for; may be given several times. Such a key makes no tenants. Default: all tenants"`
}

// operatorKeyRow is the output for an operator key.
type operatorKeyRow struct {
	ID         rolecall.OperatorKeyID `json:"id"`
	Name       string                 `json:"name"`
	Tenants    []string               `json:"tenants"` // null: all
	CreatedAt  rolecall.Time          `json:"createdAt"`
	ExpiresAt  rolecall.Time          `json:"expiresAt"`
	LastUsedAt *rolecall.Time         `json:"lastUsedAt"` // null: never
	Key        secret.Token           `json:"key,omitempty"`
}

func newOperatorKeyRow(k rolecall.OperatorKey) operatorKeyRow {
	row := operatorKeyRow{ID: k.ID, Name: k.Name, Tenants: k.Tenants, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt}
	if k.LastUsedAt != 0 {
		row.LastUsedAt = &k.LastUsedAt
	}
	return row
}

// line returns the key for a person.
func (r *operatorKeyRow) line() string {
	tenants, used := "all tenants", "never used"
	if r.Tenants != nil {
		tenants = strings.Join(r.Tenants, ", ")
	}
	if r.LastUsedAt != nil {
		used = "used " + r.LastUsedAt.String()
	}
	until := "until"
	if r.ExpiresAt <= now() {
		until = "expired"
	}
	return fmt.Sprintf("%s  %-24s %s %s  %s  %s", r.ID, r.Name, until, r.ExpiresAt, used, tenants)
}

// Run makes the key.
func (c *operatorKeyCreate) Run(ctx context.Context, p *program) error {
	return p.operate(ctx, func(n *node.Node) error {
		draft := rolecall.OperatorKeyDraft{Name: c.Name, Tenants: c.Tenant, Lifetime: time.Duration(c.Expires)}
		key, token, err := n.Directory.CreateOperatorKey(ctx, draft)
		if err != nil {
			return err
		}
		row := newOperatorKeyRow(key)
		row.Key = token
		return p.print(row, row.line(), "Key, shown only now: "+string(token))
	})
}

type operatorKeyList struct{}

// Run lists the keys, the oldest first.
func (c *operatorKeyList) Run(ctx context.Context, p *program) error {
	rows, lines := []operatorKeyRow{}, []string{}
	return p.operate(ctx, func(n *node.Node) error {
		for after := (rolecall.OperatorKeyID{}); ; after = rows[len(rows)-1].ID {
			page, err := n.Directory.OperatorKeys(ctx, after, rolecall.MaxLimit)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				return p.print(rows, lines...)
			}
			for _, key := range page {
				row := newOperatorKeyRow(key)
				rows, lines = append(rows, row), append(lines, row.line())
			}
		}
	})
}

type operatorKeyRevoke struct {
	ID rolecall.OperatorKeyID `arg:"" help:"Id of the key, as it is listed."`
}

// Run ends the key.
func (c *operatorKeyRevoke) Run(ctx context.Context, p *program) error {
	return p.operate(ctx, func(n *node.Node) error {
		if err := n.Directory.RevokeOperatorKey(ctx, c.ID); err != nil {
			return err
		}
		return p.print(done{"revoked"}, fmt.Sprintf("Operator key %s is revoked.", c.ID))
	})
}

// days is a duration that can be given in days: 90d.
type days time.Duration

// UnmarshalText reads the duration (encoding.TextUnmarshaler).
func (d *days) UnmarshalText(text []byte) error {
	if whole, ok := strings.CutSuffix(string(text), "d"); ok {
		n, err := strconv.ParseUint(whole, 10, 16)
		*d = days(time.Duration(n) * 24 * time.Hour)
		return err
	}
	read, err := time.ParseDuration(string(text))
	*d = days(read)
	return err
}
