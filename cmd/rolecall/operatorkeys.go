package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/alecthomas/kong"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
)

type operatorKeyCommands struct {
	Create operatorKeyCreate `cmd:"" help:"Create a key and print it once."`
	List   operatorKeyList   `cmd:"" help:"List keys, without their secrets."`
	Revoke operatorKeyRevoke `cmd:"" help:"Revoke a key immediately."`
}

type operatorKeyCreate struct {
	Name    string                         `arg:"" help:"Purpose of the key, such as \"Sign-up form\"."`
	Expires keyLifetime                    `default:"90d" placeholder:"DURATION" help:"Lifetime of the key, such as 30d or 12h, at most 366d. Default: ${default}"`
	Scope   chosen[rolecall.OperatorScope] `enum:"tenants,changes,lookup,all" placeholder:"SCOPE" help:"What the key is for: tenants (manage tenants), changes (follow changes), lookup (find the tenants of an address) or all. Repeatable. Default: all"`
	Tenant  chosen[string]                 `placeholder:"NAME" help:"Limit the key to this tenant. Repeatable. A limited key cannot create tenants. Default: all tenants"`
}

// chosen is a repeatable flag without which nothing is excluded. It refuses an empty value, which an unset
// variable of a script gives, because the empty list would mean all.
type chosen[T ~string] []T

// Decode implements kong.MapperValue. It appends the values, which commas separate.
func (c *chosen[T]) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("value", &text); err != nil {
		return err
	}
	for value := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(value) == "" {
			return errors.New("must not be empty; leave the flag out for all")
		}
		*c = append(*c, T(value))
	}
	return nil
}

// operatorKeyRow is the output for an operator key.
type operatorKeyRow struct {
	ID         rolecall.OperatorKeyID   `json:"id"`
	Name       string                   `json:"name"`
	Tenants    []string                 `json:"tenants"` // null: all tenants
	Scopes     []rolecall.OperatorScope `json:"scopes"`
	CreatedAt  rolecall.Time            `json:"createdAt"`
	ExpiresAt  rolecall.Time            `json:"expiresAt"`
	LastUsedAt *rolecall.Time           `json:"lastUsedAt"` // null: never
	Key        secret.Token             `json:"key,omitempty"`
}

func newOperatorKeyRow(k rolecall.OperatorKey) operatorKeyRow {
	row := operatorKeyRow{ID: k.ID, Name: k.Name, Tenants: k.Tenants, Scopes: k.Scopes, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt}
	if k.Scopes == nil {
		row.Scopes = []rolecall.OperatorScope{rolecall.ScopeAll}
	}
	if k.LastUsedAt != 0 {
		row.LastUsedAt = &k.LastUsedAt
	}
	return row
}

// line returns the key as one line of text.
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
	line := fmt.Sprintf("%s  %-24s %s %s  %s  %s", r.ID, r.Name, until, r.ExpiresAt, used, tenants)
	if slices.Contains(r.Scopes, rolecall.ScopeAll) {
		return line
	}
	line += "  only"
	for _, scope := range r.Scopes {
		line += " " + string(scope)
	}
	return line
}

// Run creates the key.
func (c *operatorKeyCreate) Run(ctx context.Context, p *program) error {
	return p.operate(ctx, func(n *node.Node) error {
		draft := rolecall.OperatorKeyDraft{Name: c.Name, Tenants: c.Tenant, Scopes: c.Scope, Lifetime: time.Duration(c.Expires)}
		key, token, err := n.Directory.CreateOperatorKey(ctx, draft)
		if err != nil {
			return err
		}
		row := newOperatorKeyRow(key)
		row.Key = token
		return p.print(row, row.line(), "Key (shown only once): "+string(token))
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
	ID rolecall.OperatorKeyID `arg:"" help:"Id of the key, from rolecall operator-key list."`
}

// Run revokes the key.
func (c *operatorKeyRevoke) Run(ctx context.Context, p *program) error {
	return p.operate(ctx, func(n *node.Node) error {
		if err := n.Directory.RevokeOperatorKey(ctx, c.ID); err != nil {
			return err
		}
		return p.print(done{"revoked"}, fmt.Sprintf("Revoked operator key %s.", c.ID))
	})
}

// keyLifetime is the lifetime of an operator key.
type keyLifetime days

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *keyLifetime) UnmarshalText(text []byte) error {
	if err := (*days)(l).UnmarshalText(text); err != nil || *l <= 0 || time.Duration(*l) > rolecall.OperatorKeyLifetimeMax {
		return errors.New("must be a duration such as 365d or 12h, at most 366d")
	}
	return nil
}

// days is a duration flag. In addition to the units of time.ParseDuration, it accepts days, such as
// 90d.
type days time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *days) UnmarshalText(text []byte) error {
	if whole, ok := strings.CutSuffix(string(text), "d"); ok {
		n, err := strconv.ParseUint(whole, 10, 16)
		if err != nil {
			return errNotDays
		}
		*d = days(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	read, err := time.ParseDuration(string(text))
	if err != nil {
		return errNotDays
	}
	*d = days(read)
	return nil
}

var errNotDays = errors.New("must be a duration such as 400d or 12h")
