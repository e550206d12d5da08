package webhooks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/queue"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// lease is how long a process reserves the parts of webhooks that it has claimed. It is longer than turnLast, one
	// attempt, and the statements of the database after it, together.
	lease = time.Minute

	// turn is how long a process delivers the items of a part before other parts get a turn, and
	// turnItems is how many. A turn begins no attempt after turnLast.
	turn      = 500 * time.Millisecond
	turnItems = 50
	turnLast  = 20 * time.Second

	// page is how many changes are read at once.
	page = 200

	interval = time.Second // how often a process looks for work of other processes
	batch    = 16          // how many groups are claimed at once

	// idlePause is how often an idle part looks for changes that did not wake it, and for the end of a
	// suspension of its tenant.
	idlePause = time.Minute

	// slow is the time of an attempt from which on the endpoint is slow.
	slow = 2 * time.Second

	// lastLimit is the time limit of attempts in progress after the context of Run ends.
	lastLimit = 5 * time.Second

	// retryPause is the pause before a transaction that the database did not answer is repeated.
	retryPause = time.Second
)

// atOnce is how many groups of each queue this process delivers at once. A group has at most one attempt
// for each of its parts at a time.
var atOnce = [rolecall.QueueCount]int{rolecall.QueueFast: 64, rolecall.QueueNew: 32, rolecall.QueueSlow: 32}

// lingering is how many more groups of each queue this process delivers at once whose attempts take
// longer than slow. With it, many new endpoints that do not answer delay other new ones only a little.
var lingering = [rolecall.QueueCount]int{rolecall.QueueFast: 64, rolecall.QueueNew: 128, rolecall.QueueSlow: 64}

// backoff is the pause before an item is sent again. With it, an item has about 45 attempts in three
// days.
var backoff = queue.Backoff{First: 5 * time.Second, Last: 2 * time.Hour}

// group has the parts of a webhook with the same place in the feed, which were claimed together.
type group struct {
	rolecall.WebhookCursor // the first part
	parts                  []rolecall.WebhookCursor
	begun                  time.Time
}

func (g *group) isTest() bool { return g.Part == rolecall.WebhookTestPart }

func (s *Service) newWorker(which rolecall.WebhookQueue) *queue.Worker[group] {
	return queue.New(queue.Worker[group]{
		AtOnce: atOnce[which], Batch: batch, Interval: interval, Lingering: lingering[which], LingerAfter: slow,
		Claim: func(ctx context.Context, n int) ([]group, error) { return s.claim(ctx, which, n) },
		Do:    s.deliver,
		Report: func(ctx context.Context, err error) {
			s.access.Outages.Report(ctx, fmt.Sprintf("cannot read due webhooks of queue %d; will retry", which), err)
		},
	})
}

// wake makes Run look for due webhooks.
func (s *Service) wake() {
	for _, worker := range s.workers {
		worker.Wake()
	}
}

// Run sends the items of webhooks until ctx ends. Then it gives the attempts in progress a few seconds.
// Any number of processes can call it: each part of a webhook is claimed by one at a time.
func (s *Service) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { s.givePlaces(ctx) })
	for _, worker := range s.workers {
		running.Go(func() { worker.Run(ctx) })
	}
	running.Wait()
}

// claim reserves up to n groups of due parts of the queue. It returns ErrNotFound if none is due.
func (s *Service) claim(ctx context.Context, which rolecall.WebhookQueue, n int) (groups []group, err error) {
	due, err := store.Read(ctx, s.access.Store, rolecall.TenantID{}, func(tx *store.Tx) (bool, error) { return tx.IsWebhookDue(which, s.now()) })
	if err != nil {
		return nil, err
	}
	if !due {
		return nil, rolecall.ErrNotFound
	}
	var claimed []rolecall.WebhookCursor
	begun := time.Now()
	err = s.access.Store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		claimed, err = tx.ClaimWebhooks(which, s.now(), s.now().Add(lease), n)
		return err
	})
	at := map[rolecall.WebhookCursor]int{}
	for _, c := range claimed {
		place := rolecall.WebhookCursor{WebhookID: c.WebhookID, Number: c.Number, Until: c.Until}
		i, known := at[place]
		if !known {
			i = len(groups)
			at[place] = i
			groups = append(groups, group{WebhookCursor: c, begun: begun})
		}
		groups[i].parts = append(groups[i].parts, c)
	}
	return groups, err
}

// deliver sends the next items of a claimed group.
func (s *Service) deliver(ctx context.Context, g group) {
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease-5*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastLimit, cancel) })
	defer stop()
	var err error
	if g.isTest() {
		err = s.deliverTest(sending, &g)
	} else {
		err = s.deliverGroup(ctx, sending, &g)
	}
	if err != nil {
		s.access.Outages.Warn(ctx, "cannot deliver the items of a webhook; will retry", err, "webhook", g.WebhookID, "tenant", g.TenantID)
	}
}

// source is the change feed that webhooks follow. A position is an integer in the order of the feed.
type source interface {
	// sender returns the client that sends the items.
	sender() *outbound.Client

	// checkURL checks the URL of an endpoint before it is stored.
	checkURL(url string) error

	// catchUp gives positions to the events that were recorded before. The feed of all tenants leaves out
	// events of other processes that have no number yet. Call it before a transaction that calls begin or
	// end for a position after these events, because it needs a transaction for each batch.
	catchUp(ctx context.Context) error

	// begin gives positions to a last batch of events. In the feed of all tenants, these have a number. It
	// returns the last position, and the number of webhooks. Until the end of the transaction, both do not
	// change.
	begin(tx *store.Tx) (last int64, webhooks int, err error)

	// lock locks the feed until the end of the transaction, so that no event gets a position in it. It returns the
	// position of the last event.
	lock(tx *store.Tx) (last int64, err error)

	// end returns the position of the last event.
	end(tx *store.Tx) (last int64, err error)

	// before returns a position before all events that occurred at the time or later.
	before(tx *store.Tx, at rolecall.Time) (int64, error)

	// isBehind gives positions to events that a process left behind, and reports whether there are events
	// after the position. The feed of all tenants leaves out events without a number: a start of a node or
	// the purge numbers those of a killed process.
	isBehind(ctx context.Context, end int64) (bool, error)

	// open loads the webhook of the group, and selects its next items. It returns ErrNotFound if the
	// webhook does not exist.
	open(ctx context.Context, g *group, next *selection) error

	// render returns the item of a change with the values that its receiver may read at this moment.
	render(ctx context.Context, g *group, c *change) (delivery, error)

	// test returns the webhook of a test, and the tenant and the source of the item. The webhook is nil if
	// the test must not be sent.
	test(tx *store.Tx, g *group) (w *rolecall.Webhook, tenant, source string, err error)
}

// sourceOf returns the feed that the webhooks of the tenant follow.
func (s *Service) sourceOf(tenant rolecall.TenantID) source {
	if tenant == rolecall.OperatorsTenant {
		return operatorsFeed{s}
	}
	return tenantFeed{s, tenant}
}

// change is a change that a webhook may send. Its Number is the position in the feed of the webhook. In the
// feed of all tenants, it also has its tenant, the name of the tenant, and the number there.
type change struct {
	rolecall.ChangeHead
	tenant rolecall.TenantID
	name   string
	number int64
}

// selection has the next items of a group.
type selection struct {
	webhook rolecall.Webhook
	items   map[int][]change // by part
	end     int64            // the last number that was read
	more    bool             // there are further changes
	wait    bool             // the tenant is suspended or deleted
	orphan  bool             // the service account does not exist
}

// deliverGroup sends the next items of the parts of g. It begins no attempt after ctx has ended. The
// context sending limits the time of attempts and of statements.
func (s *Service) deliverGroup(ctx, sending context.Context, g *group) error {
	next, err := s.next(sending, g)
	switch {
	case err != nil:
		if found, err := access.Found(err); found || err != nil {
			return err
		}
		return s.update(sending, g, func(tx *store.Tx) error {
			tx.DropWebhook(g.WebhookID)
			return nil
		})
	case next.wait:
		return s.settleAll(sending, g, rolecall.WebhookDue, s.now().Add(idlePause))
	case !next.webhook.Enabled:
		return s.settleAll(sending, g, rolecall.WebhookParked, rolecall.Never)
	case next.orphan:
		return s.disable(sending, g, rolecall.WebhookUnattended)
	}
	if err := s.renew(sending, g, next.webhook); err != nil {
		return err
	}
	var done []rolecall.WebhookCursor
	var sendings sync.WaitGroup
	failures := make([]error, len(g.parts))
	for i, part := range g.parts {
		items := next.items[part.Part]
		if len(items) == 0 {
			done = append(done, part)
			continue
		}
		sendings.Go(func() { failures[i] = s.deliverPart(ctx, sending, g, part, items, &next) })
	}
	err = s.pass(sending, g, done, &next)
	sendings.Wait()
	for _, failure := range failures {
		if err == nil {
			err = failure
		}
	}
	return err
}

// renew encrypts the secret again if a previous key of the instance has encrypted it, so that this key can
// be removed later.
func (s *Service) renew(ctx context.Context, g *group, old rolecall.Webhook) error {
	renewed := s.access.Keys.Renew(secretPurpose, string(old.Secret.Sealed), belongs(g.TenantID, old.ID))
	if renewed == string(old.Secret.Sealed) {
		return nil
	}
	changed := old
	changed.Secret.Sealed, changed.Version = []byte(renewed), old.Version+1
	return s.update(ctx, g, func(tx *store.Tx) error {
		_, err := tx.UpdateWebhook(old, changed, s.now()) // without success, a later turn does it
		return err
	})
}

// next returns the next items of the group. It returns ErrNotFound if the webhook does not exist.
func (s *Service) next(ctx context.Context, g *group) (next selection, err error) {
	next.items = map[int][]change{}
	err = s.sourceOf(g.TenantID).open(ctx, g, &next)
	if err == nil && !next.wait && g.Until == 0 && next.end == g.Number && !next.more {
		// A process that was killed may have left events that are not in the feed.
		behind, err := s.sourceOf(g.TenantID).isBehind(ctx, next.end)
		next.more = err == nil && behind
	}
	return next, err
}

// add adds the change to the items of its part, if the webhook sends it.
func (next *selection) add(g *group, c change) {
	if g.Until > 0 && (c.OccurredAt < g.From || c.OccurredAt >= g.To) || !next.webhook.Sends(&c.ChangeHead) {
		return
	}
	part := c.Partition()
	if g.Part >= rolecall.WebhookReplayPart {
		part += rolecall.WebhookReplayPart
	}
	next.items[part] = append(next.items[part], c)
}

// pass moves parts without items to the end of the selection.
func (s *Service) pass(ctx context.Context, g *group, parts []rolecall.WebhookCursor, next *selection) error {
	if len(parts) == 0 {
		return nil
	}
	return s.update(ctx, g, func(tx *store.Tx) error {
		state, due, err := s.afterwards(tx, g, next)
		for i := range parts {
			c := parts[i]
			c.Number, c.Attempts, c.FailingSince, c.Blocked, c.Item = next.end, 0, 0, 0, rolecall.EventID{}
			if err == nil {
				_, err = tx.SettleWebhook(&c, state, s.now(), due)
			}
		}
		return err
	})
}

// afterwards returns the state of a part at the end of the selection, and when it is due again.
func (s *Service) afterwards(tx *store.Tx, g *group, next *selection) (rolecall.WebhookState, rolecall.Time, error) {
	now := s.now()
	switch {
	case next.more:
		return rolecall.WebhookDue, now, nil
	case g.Until > 0:
		return rolecall.WebhookParked, rolecall.Never, nil
	}
	last, err := s.sourceOf(g.TenantID).lock(tx)
	if last > next.end {
		return rolecall.WebhookDue, now, err
	}
	return rolecall.WebhookIdle, now.Add(idlePause), err
}

// settleAll ends the claims of the group without progress.
func (s *Service) settleAll(ctx context.Context, g *group, state rolecall.WebhookState, due rolecall.Time) error {
	return s.update(ctx, g, func(tx *store.Tx) error {
		for i := range g.parts {
			if _, err := tx.SettleWebhook(&g.parts[i], state, s.now(), due); err != nil {
				return err
			}
		}
		return nil
	})
}

// disable disables the webhook for the reason. It records an event, and mails the owners of the tenant.
// Operators have no address: their event is in the operators' log.
func (s *Service) disable(ctx context.Context, g *group, reason string) error {
	var disabled bool
	err := s.update(ctx, g, func(tx *store.Tx) error {
		disabled = false
		old, err := tx.Webhook(g.WebhookID)
		if err != nil || !old.Enabled {
			_, err = access.Found(err)
			return err
		}
		now := s.now()
		changed := old.Disabled(reason, now)
		if disabled, err = tx.UpdateWebhook(old, changed, now); err != nil || !disabled { // it was changed concurrently, so the new one gets a chance
			return err
		}
		event := rolecall.Event{
			ID: rolecall.NewID[rolecall.Event](now), Type: rolecall.EventWebhookDisabled, OccurredAt: now, Members: []string{"enabled"},
			Actor: rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "webhook"}, Subject: rolecall.About(old.ID), Reason: reason,
		}
		if event.Values, err = valuesOf(g.TenantID, &old, &changed); err != nil {
			return err
		}
		tx.InsertEvent(event)
		if g.TenantID == rolecall.OperatorsTenant {
			return nil
		}
		return s.access.NotifyOwners(tx, g.TenantID, rolecall.Mail{Kind: rolecall.MailWebhookDisabled, What: because[reason]})
	})
	if err == nil && disabled {
		s.log.WarnContext(ctx, "webhook disabled", "webhook", g.WebhookID, "tenant", g.TenantID, "reason", reason)
	}
	return err
}

// because has the reasons as a part of a sentence in a mail.
var because = map[string]string{
	rolecall.WebhookGone:       "the endpoint answered with the status 410, so it does not exist any more",
	rolecall.WebhookFailing:    "an item could not be delivered for three days",
	rolecall.WebhookUnattended: "the service account of the webhook was deleted",
}

func (s *Service) view(ctx context.Context, g *group, fn func(*store.Tx) error) error {
	return g.repeat(ctx, func() error { return s.access.Store.View(ctx, g.TenantID, fn) })
}

func (s *Service) update(ctx context.Context, g *group, fn func(*store.Tx) error) error {
	return g.repeat(ctx, func() error { return s.access.Store.Update(ctx, g.TenantID, fn) })
}

// repeat runs the transaction again while the database does not answer, until ctx ends or the lease is almost over.
// Without this, the progress is lost, the group waits for the end of the lease, and its items are sent twice.
func (g *group) repeat(ctx context.Context, transaction func() error) error {
	for {
		err := transaction()
		if rolecall.KindOf(err) != rolecall.Unavailable || time.Since(g.begun) >= lease-lastLimit {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
		}
	}
}

// settling returns a context for statements that store progress. It ends lastLimit after ctx.
func settling(ctx context.Context) (context.Context, context.CancelFunc) {
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastLimit, cancel) })
	return settling, func() {
		stop()
		cancel()
	}
}

// Counts are the numbers of one process: delivered items, and failed attempts.
type Counts struct{ Delivered, Failed int64 }

// Counts returns the counts of this process.
func (s *Service) Counts() Counts {
	return Counts{s.delivered.Load(), s.failed.Load()}
}

// disabledCount is the number at which Disabled stops counting.
const disabledCount = 10_000

// Disabled returns the number of disabled webhooks of the instance, at most 10,000.
func (s *Service) Disabled(ctx context.Context) (n int, err error) {
	return store.Read(ctx, s.access.Store, rolecall.TenantID{}, func(tx *store.Tx) (int, error) { return tx.CountDisabledWebhooks(disabledCount) })
}
