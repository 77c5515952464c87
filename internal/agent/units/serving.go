//go:build linux

package units

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

// initPID is systemd's process ID.
const initPID = 1

// Serving returns the service behind a Unix socket on which the given process listens; systemd itself listens for a
// service that it starts on demand. Without such a service, it returns [ErrGone].
func (m *Manager) Serving(ctx context.Context, socket string, listener int) (string, error) {
	conn, err := m.connection(ctx)
	if err != nil {
		return "", err
	}
	what := fmt.Sprintf("the unit of process %d", listener)
	switch {
	case listener <= 0: // not of this host
		return "", fmt.Errorf("%s: %w", what, ErrGone)
	case listener == initPID:
		return startedBy(ctx, conn, socket)
	}
	name, err := conn.GetUnitNameByPID(ctx, uint32(listener)) //nolint:gosec // a process ID
	if err != nil {
		return "", explain(what, err)
	}
	if !strings.HasSuffix(name, serviceSuffix) {
		// a login session, for instance of whoever started it by hand
		return "", fmt.Errorf("%s is %s: %w", what, name, ErrGone)
	}
	return name, nil
}

// startedBy returns the service that systemd starts on a connection to a socket.
func startedBy(ctx context.Context, conn *dbus.Conn, socket string) (string, error) {
	sockets, err := conn.ListUnitsByPatternsContext(ctx, nil, []string{"*.socket"})
	if err != nil {
		return "", explain("sockets", err)
	}
	for _, unit := range sockets {
		listen, err := conn.GetUnitTypePropertyContext(ctx, unit.Name, "Socket", "Listen")
		if err = explain(unit.Name, err); errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return "", err
		}
		if !listens(listen.Value.Value(), socket) {
			continue
		}
		triggers, err := conn.GetUnitPropertyContext(ctx, unit.Name, "Triggers")
		if err != nil {
			return "", explain(unit.Name, err)
		}
		if services, _ := triggers.Value.Value().([]string); len(services) > 0 {
			return services[0], nil
		}
	}
	return "", fmt.Errorf("a unit for %s: %w", socket, ErrGone)
}

// listens reports whether a socket is among those of a socket unit: pairs of a type and an address.
func listens(property any, socket string) bool {
	pairs, _ := property.([][]any)
	for _, pair := range pairs {
		for _, part := range pair {
			if text, _ := part.(string); runtimePath(text) == runtimePath(socket) {
				return true
			}
		}
	}
	return false
}

// runtimePath returns a path with /run in place of /var/run, which is usually a link to it.
func runtimePath(path string) string {
	if rest, old := strings.CutPrefix(path, "/var/run/"); old {
		return "/run/" + rest
	}
	return path
}

// Since returns since when a unit is running; the zero time if it isn't.
func (m *Manager) Since(ctx context.Context, name string) (time.Time, error) {
	conn, err := m.connection(ctx)
	if err != nil {
		return time.Time{}, err
	}
	properties, err := conn.GetUnitPropertiesContext(ctx, name)
	if err != nil {
		return time.Time{}, explain(name, err)
	}
	entered, _ := properties["ActiveEnterTimestamp"].(uint64)
	if properties["ActiveState"] != "active" || entered == 0 {
		return time.Time{}, nil
	}
	return time.UnixMicro(int64(entered)), nil //nolint:gosec // present time in microseconds
}
