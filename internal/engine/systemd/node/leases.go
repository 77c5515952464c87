//go:build linux

package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// leasesLock guards the leases while one is read and replaced.
const leasesLock = "leases"

// held is a lease as it is stored.
type held struct {
	relay.Lease
	// Boot identifies the host's boot, and Renewed is the time since that boot of the last renewal.
	Boot    string        `json:"boot"`
	Renewed time.Duration `json:"renewed"`
}

func (p part) leaseFile(lock string) string {
	return p.dir.Path("locks", strings.ReplaceAll(lock, " ", "-")+".lease")
}

// acquire takes a lock by a lease, or renews it.
func (p part) acquire(ctx context.Context, lease relay.Lease) error {
	return p.alone(ctx, leasesLock, func() error {
		if exists, err := p.dir.Exists(); err != nil || !exists {
			return fmt.Errorf("cluster %q: %w", p.dir.Cluster, errorOr(err, engine.ErrNotFound))
		}
		current, err := statedir.Read[held](p.leaseFile(lease.Lock))
		if err != nil && !notFound(err) {
			return err
		}
		there := err == nil
		now, boot, err := clock()
		if err != nil {
			return err
		}
		if there && current.Token != lease.Token {
			if current.Boot != boot { // nobody could renew it while the host was down
				current.Boot, current.Renewed = boot, now
				if err := statedir.Write(p.leaseFile(lease.Lock), current, statedir.Volatile); err != nil {
					return err
				}
			}
			if now-current.Renewed < relay.LeaseDuration {
				return &engine.LockedError{
					Lock: lease.Lock, Holder: current.Holder,
					Unsure: now-current.Renewed > relay.LeaseDuration/relay.Renewals,
				}
			}
		}
		if lease.Renew && (!there || current.Token != lease.Token) {
			return fmt.Errorf("lock %q: %w", lease.Lock, engine.ErrLockLost)
		}
		return statedir.Write(p.leaseFile(lease.Lock), held{lease, boot, now}, statedir.Volatile)
	})
}

// release ends a lease. A lost one is left to its new holder.
func (p part) release(ctx context.Context, lease relay.Lease) error {
	return p.alone(ctx, leasesLock, func() error {
		current, err := statedir.Read[held](p.leaseFile(lease.Lock))
		if err != nil && !notFound(err) {
			return err
		}
		if current.Token != lease.Token {
			return fmt.Errorf("lock %q: %w", lease.Lock, engine.ErrLockLost)
		}
		return statedir.Delete(p.leaseFile(lease.Lock))
	})
}

func errorOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// clock returns the time since the host's boot, which nobody can set, and the ID of that boot.
func clock() (time.Duration, string, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, "", err
	}
	boot, err := proctree.BootID("/proc")
	return time.Duration(now.Nano()), boot, err
}
