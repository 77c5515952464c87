//go:build linux

package units

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

var (
	// ErrUncertain means that it is unknown whether systemd did what was requested.
	ErrUncertain = errors.New("systemd did not answer")
	// ErrGone is returned for a unit that does not exist.
	ErrGone = errors.New("no such unit")
	// ErrInvalid means that systemd rejects a property.
	ErrInvalid = errors.New("systemd rejected it")
)

// Manager is the systemd of this host. It uses one connection, and reconnects if that breaks.
type Manager struct {
	mu   sync.Mutex
	conn *dbus.Conn
}

// connection returns the connection to systemd.
func (m *Manager) connection(ctx context.Context) (*dbus.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil && m.conn.Connected() {
		return m.conn, nil
	}
	if m.conn != nil {
		m.conn.Close()
	}
	// The connection ends with its context, so it must not be that of the call; ctx only bounds the connecting.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	made := context.AfterFunc(ctx, end)
	conn, err := dbus.NewWithContext(life)
	if !made() && err == nil {
		conn.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		m.conn = nil
		return nil, fmt.Errorf("connecting to systemd: %w", err)
	}
	m.conn = conn
	return conn, nil
}

// Close closes the connection.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil {
		m.conn.Close()
		m.conn = nil
	}
}

// Start starts a transient unit, without waiting for its command to run.
func (m *Manager) Start(ctx context.Context, name string, properties []dbus.Property) error {
	conn, err := m.connection(ctx)
	if err != nil {
		return err
	}
	_, err = conn.StartTransientUnitContext(ctx, name, "fail", properties, nil)
	return explain(name, err)
}

// Stop stops a unit, without waiting for its end.
func (m *Manager) Stop(ctx context.Context, name string) error {
	conn, err := m.connection(ctx)
	if err != nil {
		return err
	}
	_, err = conn.StopUnitContext(ctx, name, "replace", nil)
	return explain(name, err)
}

// Kill kills the main process of a unit. systemd then kills the rest, as it does with anything that a command leaves
// behind.
func (m *Manager) Kill(ctx context.Context, name string) error {
	conn, err := m.connection(ctx)
	if err != nil {
		return err
	}
	return explain(name, conn.KillUnitWithTarget(ctx, name, dbus.Main, int32(unix.SIGKILL)))
}

// Raise changes the limits of a running unit: the CPU limit, and the memory limit if the new one is higher. 0 leaves a
// limit unchanged.
func (m *Manager) Raise(ctx context.Context, name string, limits domain.Resources) error {
	conn, err := m.connection(ctx)
	if err != nil {
		return err
	}
	const memory = "MemoryMax"
	has, err := conn.GetServicePropertyContext(ctx, name, memory)
	if err != nil {
		return explain(name, err)
	}
	if present, ok := has.Value.Value().(uint64); !ok || present >= uint64(limits.MemoryMiB)<<20 { //nolint:gosec // it is not negative
		limits.MemoryMiB = 0
	}
	raised := limitsOf(limits)
	if len(raised) == 0 {
		return nil
	}
	list := make([]dbus.Property, 0, len(raised))
	for _, property := range slices.Sorted(maps.Keys(raised)) {
		list = append(list, dbus.Property{Name: property, Value: godbus.MakeVariant(raised[property])})
	}
	return explain(name, conn.SetUnitPropertiesContext(ctx, name, true, list...))
}

// Activating is the state of a unit whose command is being started.
const Activating = "activating"

// List returns the states of a cluster's services that have not ended.
func (m *Manager) List(ctx context.Context, cluster string) (map[string]string, error) {
	conn, err := m.connection(ctx)
	if err != nil {
		return nil, err
	}
	units, err := conn.ListUnitsByPatternsContext(ctx, nil, []string{pattern(cluster)})
	if err != nil {
		return nil, explain("its units", err)
	}
	states := make(map[string]string, len(units))
	for _, u := range units {
		switch over := u.ActiveState == "inactive" || u.ActiveState == "failed"; {
		case !strings.HasPrefix(u.Name, namePrefix(cluster)): // of another cluster with a similar name
		case over && u.JobId != 0:
			states[u.Name] = Activating // it waits for its start job
		case !over:
			states[u.Name] = u.ActiveState
		}
	}
	return states, nil
}

// Stopped returns when a running unit was last stopped, or ended by itself, and when it was back; both are zero if that
// never happened, or the unit doesn't exist.
func (m *Manager) Stopped(ctx context.Context, name string) (from, until time.Time, err error) {
	conn, err := m.connection(ctx)
	if err != nil {
		return from, until, err
	}
	properties, err := conn.GetUnitPropertiesContext(ctx, name)
	if err != nil {
		return from, until, explain(name, err)
	}
	left, _ := properties["ActiveExitTimestamp"].(uint64)
	entered, _ := properties["ActiveEnterTimestamp"].(uint64)
	if left == 0 || entered < left {
		return from, until, nil
	}
	return time.UnixMicro(int64(left)), time.UnixMicro(int64(entered)), nil //nolint:gosec // present time in microseconds
}

// The errors that systemd returns, or the bus on its behalf.
const (
	busErrors      = "org.freedesktop.DBus.Error."
	noSuchUnit     = "org.freedesktop.systemd1.NoSuchUnit"
	noSuchProcess  = "org.freedesktop.systemd1.NoSuchProcess"
	badUnitSetting = "org.freedesktop.systemd1.BadUnitSetting"
)

// explain translates an error of the bus.
func explain(name string, err error) error {
	if err == nil {
		return nil
	}
	answer, answered := errors.AsType[godbus.Error](err)
	kind := ErrUncertain
	switch short := strings.TrimPrefix(answer.Name, busErrors); {
	case !answered, short == "NoReply", short == "Timeout", short == "TimedOut", short == "Disconnected":
	case answer.Name == noSuchUnit, answer.Name == noSuchProcess:
		kind = ErrGone
	case short == "InvalidArgs", answer.Name == badUnitSetting:
		kind = ErrInvalid
	default:
		return fmt.Errorf("%s: systemd says: %w", name, err)
	}
	return fmt.Errorf("%s: %w: %w", name, kind, err)
}
