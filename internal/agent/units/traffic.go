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

// Traffic is what an instance received and sent over IP since its unit started, to and from its own host, too: bytes
// without the headers of links.
type Traffic struct{ Received, Sent uint64 }

// callsAtOnce bounds the calls that systemd has to answer at once.
const callsAtOnce = 8

// Traffic returns the traffic of the units of all clusters, by instance. Those whose traffic systemd doesn't count are
// not among them.
func (m *Manager) Traffic(ctx context.Context) (map[string]Traffic, error) {
	conn, err := m.connection(ctx)
	if err != nil {
		return nil, err
	}
	running, err := conn.ListUnitsByPatternsContext(ctx, []string{"active", "deactivating"}, []string{prefix + "-*" + serviceSuffix})
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

// counter returns a counter of a service; nil where there is none, or no such service any more.
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

// trafficOf returns what two counters tell. What systemd doesn't count is the highest number there is.
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
