package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/internal/service"
)

// registerWatch adds what tells how fast changes by other processes are seen here.
func registerWatch(registry prometheus.Registerer, s *service.Service) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rolecall_watch_up", Help: "1 while this process is being told what others change in the database, 0 while it reads anew all the time instead.",
		}, func() float64 {
			if up, _ := s.Watching(); up {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rolecall_watch_behind_seconds", Help: "For how long a change by another process may have gone unseen here.",
		}, func() float64 {
			_, behind := s.Watching()
			return behind.Seconds()
		}),
	)
}
