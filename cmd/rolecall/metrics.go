package main

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/webhooks"
)

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

// registerPasswords adds the metric that counts computed password hashes.
func registerPasswords(registry prometheus.Registerer, p *secret.Passwords) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "rolecall_password_hashes_total", Help: "Password hashes computed.",
	}, func() float64 { return float64(p.Hashed()) }))
}

// waitingLimit is the maximum time that a scrape waits for the database to count the waiting mail.
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
