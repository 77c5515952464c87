//go:build linux

package units

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sync/errgroup"
)

// Traffic is an instance's IP traffic since its unit started, loopback included, in bytes without link-layer headers.
type Traffic struct{ Received, Sent uint64 }

// callsAtOnce bounds the concurrent calls to systemd.
const callsAtOnce = 8

// Traffic returns the traffic of all clusters' units, by instance. Units whose traffic systemd doesn't count are left
// out.
func (m *Manager) Traffic(ctx context.Context) (map[string]Traffic, error) {
	conn, err := m.connection(ctx)
	if err != nil {
		return nil, err
	}
	running, err := conn.ListUnitsByPatternsContext(ctx, []string{"active", "deactivating"},
		[]string{prefix + "-*" + serviceSuffix})
	if err != nil {
		return nil, explain("its units", err)
	}
	var mu sync.Mutex
	counted := map[string]Traffic{}
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(callsAtOnce)
	for _, unit := range running {
		calls.Go(func() error {
			received, errReceived := counter(ctx, conn, unit.Name, "IPIngressBytes")
			sent, errSent := counter(ctx, conn, unit.Name, "IPEgressBytes")
			if traffic, known := trafficOf(received, sent); known {
				mu.Lock()
				defer mu.Unlock()
				counted[InstanceOf(unit.Name)] = traffic
			}
			return errors.Join(errReceived, errSent)
		})
	}
	return counted, calls.Wait()
}

// counter returns a counter of a service; nil if it doesn't have one, or no longer exists.
func counter(ctx context.Context, conn *dbus.Conn, service, name string) (any, error) {
	property, err := conn.GetServicePropertyContext(ctx, service, name)
	err = explain(service, err)
	switch {
	case err == nil:
		return property.Value.Value(), nil
	case errors.Is(err, ErrUncertain):
		return nil, err
	}
	return nil, nil
}

// trafficOf returns the traffic for two counters. systemd reports the maximum for what it doesn't count.
func trafficOf(received, sent any) (t Traffic, known bool) {
	t.Received, known = received.(uint64)
	if !known || t.Received == math.MaxUint64 {
		return Traffic{}, false
	}
	t.Sent, known = sent.(uint64)
	if !known || t.Sent == math.MaxUint64 {
		return Traffic{}, false
	}
	return t, true
}
