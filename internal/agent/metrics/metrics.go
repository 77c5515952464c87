// Package metrics exports to Prometheus what an agent has measured, and what a controller knows: which members that
// belongs to, and what autoscaling policies do.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
)

// path is Prometheus' default path.
const path = "/metrics"

// Handler answers GET /metrics with the latest sample in a resident's report, under the given host name. It measures
// nothing itself.
func Handler(report func(window time.Duration) telemetry.Report, host string) http.Handler {
	return handler(collector{host, func() telemetry.Report { return report(0) }})
}

// ControllerHandler answers GET /metrics with the status of policies, and with the running members.
func ControllerHandler(statuses func() []PolicyStatus, running func() []MemberInfo) http.Handler {
	return handler(policies(statuses), members(running))
}

func handler(all ...prometheus.Collector) http.Handler {
	own := prometheus.NewRegistry()
	own.MustRegister(all...)
	mux := http.NewServeMux()
	mux.Handle("GET "+path, promhttp.HandlerFor(own, promhttp.HandlerOpts{}))
	return mux
}
