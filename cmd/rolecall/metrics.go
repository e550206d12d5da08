package main

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/invalidation"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/webhooks"
)

// newRegistry returns a registry with the metrics of the program, the runtime of Go and the process.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerBuild(registry)
	return registry
}

// registerNode adds the metrics of the services and the background work of the node.
func registerNode(registry prometheus.Registerer, n *node.Node) {
	registerPasswords(registry, n.Access.Passwords)
	registerDatabase(registry, n.Access)
	registerCaches(registry, n)
	registerSignIns(registry, n.Access.Refusals)
	registerOperatorKeys(registry, n.Access.Store)
	registerWatch(registry, n.Access)
	registerMail(registry, n.Access.Outbox)
	registerChanges(registry, n.Access.Feed)
	registerWebhooks(registry, n.Webhooks)
}

// registerWatch adds the metrics that show whether this process is notified of changes by other
// processes, and how late it can see them.
func registerWatch(registry prometheus.Registerer, a *access.Service) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rolecall_watch_up", Help: "1 while this process is notified of changes by other processes, 0 while it reads the database more often instead.",
		}, func() float64 {
			if up, _ := a.Watching(); up {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rolecall_watch_behind_seconds", Help: "How long a change by another process can have been unseen by this process, in seconds.",
		}, func() float64 {
			_, behind := a.Watching()
			return behind.Seconds()
		}),
	)
}

// registerChanges adds the metric of events that have no number in the change feed yet.
func registerChanges(registry prometheus.Registerer, f *feed.Feed) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rolecall_changes_lag_seconds", Help: "Age of the oldest event of this process that is not in the change feed yet, in seconds. 0 if all are.",
	}, func() float64 { return f.Lag().Seconds() }))
}

// registerWebhooks adds the metrics of the deliveries of webhooks.
func registerWebhooks(registry prometheus.Registerer, w *webhooks.Service) {
	deliveries := func(result string, count func(webhooks.Counts) int64) {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rolecall_webhook_deliveries_total", Help: "Attempts of this process to send an item of a webhook, by result.", ConstLabels: prometheus.Labels{"result": result},
		}, func() float64 { return float64(count(w.Counts())) }))
	}
	deliveries("delivered", func(c webhooks.Counts) int64 { return c.Delivered })
	deliveries("failed", func(c webhooks.Counts) int64 { return c.Failed })
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rolecall_webhooks_disabled", Help: "Disabled webhooks of the whole instance, counted up to 10,000. NaN if the database does not answer in time.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), waitingLimit)
		defer cancel()
		n, err := w.Disabled(ctx)
		if err != nil {
			return math.NaN()
		}
		return float64(n)
	}))
}

// registerDatabase adds the metrics of the connections to the database, and whether it accepts writes.
func registerDatabase(registry prometheus.Registerer, a *access.Service) {
	s := a.Store
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rolecall_database_connections_in_use", Help: "Connections to the database that are in use. On SQLite, only reads use them.",
		}, func() float64 { return float64(s.Connections().InUse) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rolecall_database_connections_max", Help: "Maximum number of these connections.",
		}, func() float64 { return float64(s.Connections().Max) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rolecall_database_connection_waits_total", Help: "How many times all these connections were in use when one was needed.",
		}, func() float64 { return float64(s.Connections().Waits) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rolecall_database_writable", Help: "1 if the database accepted a write of this process during the scrape, 0 if it did not within a second.",
		}, func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), waitingLimit)
			defer cancel()
			if err := a.Writable(ctx); err != nil {
				return 0
			}
			return 1
		}),
	)
}

// registerCaches adds the metrics of the caches of tenants and of sessions.
func registerCaches(registry prometheus.Registerer, n *node.Node) {
	for cache, stats := range map[string]func() invalidation.CacheStats{"tenants": n.Directory.CacheStats, "sessions": n.SignIn.CacheStats} {
		labels := prometheus.Labels{"cache": cache}
		registry.MustRegister(
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "rolecall_cache_entries", Help: "Entries of a cache.", ConstLabels: labels,
			}, func() float64 { return float64(stats().Entries) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "rolecall_cache_hits_total", Help: "Lookups that found an entry in a cache.", ConstLabels: labels,
			}, func() float64 { return float64(stats().Hits) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "rolecall_cache_misses_total", Help: "Lookups that found no entry in a cache, and read the database.", ConstLabels: labels,
			}, func() float64 { return float64(stats().Misses) }),
		)
	}
}

// registerSignIns adds the metric of failed sign-ins.
func registerSignIns(registry prometheus.Registerer, r *access.Refusals) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "rolecall_sign_ins_failed_total", Help: "Failed sign-ins and re-authentications at this process, except those refused by a limit.",
	}, func() float64 { return float64(r.FailedSignIns()) }))
}

// operatorKeysRead is the maximum number of operator keys that a scrape reads.
const operatorKeysRead = 1000

// registerOperatorKeys adds the metric of the expiry of operator keys.
func registerOperatorKeys(registry prometheus.Registerer, s *store.Store) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rolecall_operator_key_next_expiry_timestamp_seconds", Help: "Time at which the next operator key expires, as Unix time. +Inf without a valid key, NaN if the database does not answer in time.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), waitingLimit)
		defer cancel()
		keys, err := store.Read(ctx, s, rolecall.TenantID{}, func(tx *store.Tx) ([]rolecall.OperatorKey, error) {
			return tx.OperatorKeys(rolecall.OperatorKeyID{}, operatorKeysRead)
		})
		if err != nil {
			return math.NaN()
		}
		next := math.Inf(1)
		for _, k := range keys {
			if k.Live(now()) {
				next = min(next, float64(k.ExpiresAt.Std().Unix()))
			}
		}
		return next
	}))
}

// registerPasswords adds the metric that counts computed password hashes.
func registerPasswords(registry prometheus.Registerer, p *secret.Passwords) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "rolecall_password_hashes_total", Help: "Password hashes computed.",
	}, func() float64 { return float64(p.Hashed()) }))
}

// waitingLimit is the maximum time that a scrape waits for an answer of the database.
const waitingLimit = time.Second

// registerMail adds the metrics of sent, failed, dropped, given-up and waiting mail.
func registerMail(registry prometheus.Registerer, mails *outbox.Outbox) {
	registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rolecall_mails_sent_total", Help: "Mails from this process that the mail server accepted.",
		}, func() float64 {
			return float64(mails.Counts().Sent)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rolecall_mails_failed_total", Help: "Failed attempts of this process to send a mail. A mail is retried until it expires, or until the mail server reports that the mailbox does not exist.",
		}, func() float64 {
			return float64(mails.Counts().Failed)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rolecall_mails_dropped_total", Help: "Mails that this process did not send, because their link was used, replaced or revoked, or their user was deleted.",
		}, func() float64 {
			return float64(mails.Counts().Dropped)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rolecall_mails_given_up_total", Help: "Mails that this process gave up, because they expired or their mailbox does not exist.",
		}, func() float64 {
			return float64(mails.Counts().GivenUp)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rolecall_mails_waiting", Help: "Mails of the whole instance that wait to be sent, counted up to 10,000. NaN if the database does not answer in time.",
		}, func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), waitingLimit)
			defer cancel()
			n, err := mails.Waiting(ctx)
			if err != nil {
				return math.NaN()
			}
			return float64(n)
		}),
	)
}
