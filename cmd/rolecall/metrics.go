package main

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/secret"
)

// registerWatch adds what tells how fast changes by other processes are seen here.
func registerWatch(registry prometheus.Registerer, a *access.Service) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rolecall_watch_up", Help: "1 while this process is being told what others change in the database, 0 while it reads anew all the time instead.",
		}, func() float64 {
			if up, _ := a.Watching(); up {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rolecall_watch_behind_seconds", Help: "For how long a change by another process may have gone unseen here.",
		}, func() float64 {
			_, behind := a.Watching()
			return behind.Seconds()
		}),
	)
}

// registerPasswords adds how many password hashes were computed.
func registerPasswords(registry prometheus.Registerer, p *secret.Passwords) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "rolecall_password_hashes_total", Help: "Password hashes computed.",
	}, func() float64 { return float64(p.Hashed()) }))
}

// waitingLimit bounds how long a scrape waits for the store to count mail.
const waitingLimit = time.Second

// registerMail adds what tells whether mail leaves.
func registerMail(registry prometheus.Registerer, mails *outbox.Outbox) {
	registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rolecall_mails_sent_total", Help: "Mails that the mail server took from this process.",
		}, func() float64 {
			return float64(mails.Counts().Sent)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rolecall_mails_failed_total", Help: "Attempts of this process to send a mail that failed; each is tried again as long as it is of use.",
		}, func() float64 {
			return float64(mails.Counts().Failed)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rolecall_mails_dropped_total", Help: "Mails that this process did not send because they were void: their link was used, replaced or revoked, or their user was deleted.",
		}, func() float64 {
			return float64(mails.Counts().Dropped)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rolecall_mails_given_up_total", Help: "Mails that this process gave up: there is no such mailbox, or they could not be sent while they were of use.",
		}, func() float64 {
			return float64(mails.Counts().GivenUp)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rolecall_mails_waiting", Help: "Mails of the whole instance that wait to be sent, counted up to 10,000; not a number if the database does not tell.",
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
