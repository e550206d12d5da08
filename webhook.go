package rolecall

import (
	"fmt"
	"slices"
	"time"
)

// The limits of webhooks.
const (
	WebhooksMax       = 20 // maximum number of webhooks in a tenant
	WebhookTypesMax   = 100
	WebhookActorsMax  = 100
	WebhookPartitions = 4 // the items of a webhook are delivered in order within each of these parts

	// WebhookDeliveriesMax is the number of attempts that are kept of each part of a webhook.
	WebhookDeliveriesMax = 128

	// WebhookOverlap is how long the old secret signs after a rotation, besides the new one.
	WebhookOverlap = 24 * time.Hour

	// WebhookPatience is how long an item can fail before its webhook is disabled.
	WebhookPatience = 72 * time.Hour

	// PlacesKept is how long the feed of all tenants keeps a place that a webhook of operators has not
	// read.
	PlacesKept = 30 * 24 * time.Hour
)

// Webhook is an endpoint of a tenant or of the operators of the instance, to which the items of the change
// feed are sent. The items have the values that its service account may read. Those of a webhook of
// operators have all values.
type Webhook struct {
	ID               WebhookID        `json:"id" doc:"ID of the webhook."`
	URL              string           `json:"url" doc:"Where the items are sent. It begins with https://."`
	Types            []EventType      `json:"types" doc:"The types of events that are sent, or only * for all types."`
	ServiceAccountID ServiceAccountID `json:"serviceAccountId" doc:"ID of the service account that decides which values the items have. It needs changes:read in the whole tenant."`
	IgnoreActors     []AnyID          `json:"ignoreActors" doc:"Events that these users, service accounts or operator keys caused are not sent."`
	Enabled          bool             `json:"enabled" doc:"Whether items are sent."`
	DisabledReason   *string          `json:"disabledReason" doc:"Why Rolecall disabled the webhook: status-410 (the answer of the endpoint), failing (an item has failed for three days) or service-account-deleted. Null otherwise. Later versions may add values."`
	CreatedAt        Time             `json:"createdAt" doc:"When the webhook was created."`
	UpdatedAt        Time             `json:"updatedAt" doc:"When the webhook was changed last."`
	Version          int64            `json:"-"`

	Secret WebhookSecret `json:"-"`
}

// AllEventTypes stands for all types of events, in place of a list of types.
const AllEventTypes EventType = "*"

// WebhookSecret is the stored secret of a webhook. Old is the secret before the last rotation. It signs
// too until OldUntil.
type WebhookSecret struct {
	Sealed   []byte
	Old      []byte
	OldUntil Time
}

// OperatorsAccount is stored in place of a service account by the webhooks of operators.
var OperatorsAccount = ServiceAccountID(OperatorsTenant)

// The reasons why Rolecall disables a webhook.
const (
	WebhookGone       = "status-410"
	WebhookFailing    = "failing"
	WebhookUnattended = "service-account-deleted"
)

// WebhookDraft describes a webhook to create. Nil types are all types.
type WebhookDraft struct {
	URL              string           `json:"url" required:"true" minLength:"1" maxLength:"2048" pattern:"^[Hh][Tt][Tt][Pp][Ss]://[!\"$-\\[\\]-~]+$" doc:"Where to send the items. It must begin with https:// and have a host on the internet."`
	Types            []EventType      `json:"types" minItems:"1" maxItems:"100" pattern:"^([a-z_]+\\.[a-z_]+|\\*)$" doc:"The types of events to send, such as user.updated, or only * for all types, the default. /docs/events lists all types."`
	ServiceAccountID ServiceAccountID `json:"serviceAccountId" required:"true" doc:"ID of the service account that decides which values the items have. It needs changes:read in the whole tenant."`
	IgnoreActors     []AnyID          `json:"ignoreActors" maxItems:"100" doc:"Do not send events that these users, service accounts or operator keys caused. Empty for no exceptions."`
	Enabled          Optional[bool]   `json:"enabled" doc:"Whether to send items. The default is true."`
}

// Check validates the draft, except for the URL. It returns nil if the draft is valid.
func (d *WebhookDraft) Check() FieldErrors {
	var faults FieldErrors
	if d.Types != nil {
		checkTypes(&faults, d.Types)
	}
	checkActors(&faults, d.IgnoreActors)
	return faults
}

// Webhook returns a new webhook with the values of the draft. The draft must have passed Check.
func (d *WebhookDraft) Webhook(now Time) Webhook {
	types := d.Types
	if types == nil {
		types = []EventType{AllEventTypes}
	}
	return Webhook{
		ID: NewID[Webhook](now), URL: d.URL, Types: normal(types), ServiceAccountID: d.ServiceAccountID, IgnoreActors: normal(d.IgnoreActors),
		Enabled: !d.Enabled.Set || d.Enabled.Value, CreatedAt: now, UpdatedAt: now, Version: 1,
	}
}

// WebhookPatch changes a webhook. Absent members keep their values (RFC 7396). Types and IgnoreActors
// replace the whole lists.
type WebhookPatch struct {
	URL              Optional[string]           `json:"url" minLength:"1" maxLength:"2048" pattern:"^[Hh][Tt][Tt][Pp][Ss]://[!\"$-\\[\\]-~]+$" doc:"Where to send the items. It must begin with https:// and have a host on the internet."`
	Types            Optional[[]EventType]      `json:"types" minItems:"1" maxItems:"100" pattern:"^([a-z_]+\\.[a-z_]+|\\*)$" doc:"The types of events to send, or only * for all types."`
	ServiceAccountID Optional[ServiceAccountID] `json:"serviceAccountId" doc:"ID of the service account that decides which values the items have. It needs changes:read in the whole tenant."`
	IgnoreActors     Optional[[]AnyID]          `json:"ignoreActors" maxItems:"100" doc:"Do not send events that these users, service accounts or operator keys caused. Empty for no exceptions."`
	Enabled          Optional[bool]             `json:"enabled" doc:"Whether to send items. A webhook that is enabled again continues with the first item that was not delivered."`
}

// Check validates the patch, except for the URL. It returns nil if the patch is valid.
func (p *WebhookPatch) Check() FieldErrors {
	var faults FieldErrors
	if p.Types.Set {
		checkTypes(&faults, p.Types.Value)
	}
	checkActors(&faults, p.IgnoreActors.Value)
	return faults
}

// Apply returns the webhook with the changes of the patch, and the names of the members whose values
// changed. If no value changed, the names are nil. The patch must have passed Check.
func (p *WebhookPatch) Apply(w Webhook, now Time) (Webhook, []string) {
	var changed []string
	if p.URL.Set && p.URL.Value != w.URL {
		w.URL, changed = p.URL.Value, append(changed, "url")
	}
	if next := normal(p.Types.Value); p.Types.Set && !slices.Equal(next, w.Types) {
		w.Types, changed = next, append(changed, "types")
	}
	if p.ServiceAccountID.Set && p.ServiceAccountID.Value != w.ServiceAccountID {
		w.ServiceAccountID, changed = p.ServiceAccountID.Value, append(changed, "serviceAccountId")
	}
	if next := normal(p.IgnoreActors.Value); p.IgnoreActors.Set && !slices.Equal(next, w.IgnoreActors) {
		w.IgnoreActors, changed = next, append(changed, "ignoreActors")
	}
	if p.Enabled.Set && p.Enabled.Value != w.Enabled {
		w.Enabled, w.DisabledReason, changed = p.Enabled.Value, nil, append(changed, "enabled")
	}
	if changed != nil {
		w = w.touched(now)
	}
	return w, changed
}

// Disabled returns a copy of the webhook that Rolecall has disabled for the reason.
func (w Webhook) Disabled(reason string, now Time) Webhook {
	w.Enabled, w.DisabledReason = false, &reason
	return w.touched(now)
}

// Rotated returns a copy of the webhook with a new secret. The current one still signs for
// WebhookOverlap.
func (w Webhook) Rotated(sealed []byte, now Time) Webhook {
	w.Secret = WebhookSecret{Sealed: sealed, Old: w.Secret.Sealed, OldUntil: now.Add(WebhookOverlap)}
	return w.touched(now)
}

func (w Webhook) touched(now Time) Webhook {
	w.UpdatedAt = max(now, w.UpdatedAt+1)
	w.Version++
	return w
}

// SendsAllTypes reports whether the webhook sends events of all types. The databases of earlier versions
// have an empty list for it.
func (w *Webhook) SendsAllTypes() bool {
	return len(w.Types) == 0 || slices.Contains(w.Types, AllEventTypes)
}

// Sends reports whether the webhook sends a change.
func (w *Webhook) Sends(c *ChangeHead) bool {
	return (w.SendsAllTypes() || slices.Contains(w.Types, c.Type)) && (c.Actor.IsZero() || !slices.Contains(w.IgnoreActors, c.Actor))
}

// checkTypes checks the types of a webhook. No types are invalid: a program that has lost its list would
// otherwise get more than with any list.
func checkTypes(faults *FieldErrors, types []EventType) {
	switch {
	case len(types) == 0:
		faults.Add("/types", "too-few", "must name at least one type, or only * for all types")
	case len(types) > WebhookTypesMax:
		faults.Add("/types", "too-many", fmt.Sprintf("must have at most %d types", WebhookTypesMax))
		return
	case slices.Contains(types, AllEventTypes):
		if len(types) > 1 {
			faults.Add("/types", "conflict", "must have no other types besides *")
		}
		return
	}
	for i, t := range types {
		if !slices.ContainsFunc(eventDescriptions, func(d EventDescription) bool { return d.Type == t }) {
			faults.Add(fmt.Sprintf("/types/%d", i), "unknown", "must be a known type of event, such as user.updated; /docs/events lists all types")
		}
	}
}

func checkActors(faults *FieldErrors, actors []AnyID) {
	if len(actors) > WebhookActorsMax {
		faults.Add("/ignoreActors", "too-many", fmt.Sprintf("must have at most %d IDs", WebhookActorsMax))
	}
}

// normal returns the values without duplicates, in the given order. It is never nil.
func normal[T comparable](values []T) []T {
	kept, seen := []T{}, make(map[T]bool, len(values))
	for _, v := range values {
		if !seen[v] {
			seen[v] = true
			kept = append(kept, v)
		}
	}
	return kept
}

// ChangeHead is a change without its values.
type ChangeHead struct {
	Number     int64
	ID         EventID
	Type       EventType
	Subject    AnyID
	Actor      AnyID
	OccurredAt Time
}

// Partition returns the part of a webhook to which the change belongs. All changes of a subject
// belong to the same part.
func (c *ChangeHead) Partition() int { return int(c.Subject[15]) % WebhookPartitions }

// The parts of a webhook. The first ones follow the feed, and the next ones repeat a range of it.
const (
	WebhookReplayPart = WebhookPartitions
	WebhookTestPart   = 2 * WebhookPartitions
)

// WebhookQueue is a group of parts of webhooks that are delivered together, so that endpoints which do
// not answer do not delay the others.
type WebhookQueue int

// The queues.
const (
	QueueFast WebhookQueue = iota // the last attempt succeeded quickly
	QueueNew                      // no attempt yet
	QueueSlow                     // the last attempt failed or was slow
	QueueCount
)

// WebhookState is the state of a part of a webhook.
type WebhookState int

// The states of a part of a webhook.
const (
	WebhookDue     WebhookState = iota // waits for a time: there are items
	WebhookIdle                        // waits for new changes
	WebhookClaimed                     // a process delivers it
	WebhookParked                      // waits for a change of the webhook
)

// WebhookCursor is the place of a part of a webhook in the feed.
type WebhookCursor struct {
	WebhookID    WebhookID
	TenantID     TenantID
	Part         int
	Queue        WebhookQueue
	Number       int64 // all items up to it are delivered
	Until        int64 // the last number to deliver; 0: no end; -1: a test
	From, To     Time  // only events of this time, in a replay
	Lease        int64 // counts the claims
	Attempts     int   // failed attempts for the next item
	FailingSince Time
	Blocked      int64   // the number of the item that failed; 0: none
	Item         EventID // the item that failed, or the test to send
	Slot         int64   // counts the attempts
}

// WebhookDelivery is an attempt to deliver an item.
type WebhookDelivery struct {
	ID       WebhookDeliveryID
	Slot     int // where it is stored; it replaces an older attempt
	Item     EventID
	Type     EventType
	Attempt  int
	Status   int // the status of the response; 0: none
	Duration time.Duration
	Error    string // a code; empty: the item was delivered
}

// WebhookDeliveryQuery selects attempts of a webhook, the newest first.
type WebhookDeliveryQuery struct {
	Webhook WebhookID
	Result  string // delivered, failed, or empty for all
	After   *Position
	Limit   int
}
