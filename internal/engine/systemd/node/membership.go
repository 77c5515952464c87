//go:build linux

package node

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// join makes this host part of the cluster, or informs it that another host has become the store host.
func (p part) join(ctx context.Context, m relay.Membership) (credentials relay.Credentials, err error) {
	if err := os.MkdirAll(layout.Clusters, 0o711); err != nil { //nolint:gosec // members have their files below it
		return credentials, err
	}
	if err := p.dir.Create(); err != nil {
		return credentials, err
	}
	err = p.alone(ctx, ledgerLock, func() error {
		own, err := p.ledger()
		if credentials.Anew = errors.Is(err, relay.ErrOutside); err != nil && !credentials.Anew {
			return err
		}
		if own.Epoch > m.Ledger.Epoch {
			return p.deposed(own, m.Ledger)
		}
		return p.writeLedger(joined(own, m.Ledger))
	})
	if err != nil {
		return credentials, err
	}
	machine, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		return credentials, err
	}
	credentials.Machine = strings.TrimSpace(string(machine))
	if credentials.HostKeys, err = hostKeys(); err != nil {
		return credentials, err
	}
	private, public, err := p.clusterKey(m.Key)
	if err != nil {
		return credentials, err
	}
	credentials.Key = private
	return credentials, p.admit(public)
}

// joined returns the ledger of a host that joins a cluster, given the host's own one, if any. A copy of an earlier
// epoch may lack changes of this one and have others, so none of it counts: it is restored as a whole.
func joined(own, cluster relay.Ledger) relay.Ledger {
	next := relay.Ledger{Host: cluster.Host, Store: cluster.Store, Epoch: cluster.Epoch, Sequence: own.Sequence}
	if next.Epoch > own.Epoch && next.Host != next.Store {
		next.Sequence = -1
	}
	return next
}

// introduce stores how the controller reaches the other hosts.
func (p part) introduce(i relay.Introduction) error {
	return statedir.Write(p.dir.Path(layout.PeersFile), i, statedir.Durable)
}

// leave ends everything that runs for the cluster on this host, and removes everything of the cluster there.
func (p part) leave(ctx context.Context) error {
	unit := layout.SupervisorUnit(p.dir.Cluster)
	// The state directory lists who was let in.
	if err := p.admit(""); err != nil {
		return err
	}
	if err := p.Dissolve(ctx); err != nil {
		return err
	}
	if err := removeContainers(ctx, p.dir.Cluster); err != nil {
		return err
	}
	file := filepath.Join(layout.Units, unit)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// A unit can't be disabled once it is removed; a supervisor that has not ended yet would find no cluster.
	if err := systemctl(ctx, "disable", "--now", "--no-reload", "--quiet", unit); err != nil {
		return err
	}
	// Slices remain after the last of their units is gone; those of groups are below the cluster's.
	if err := systemctl(ctx, "stop", units.Slice(p.dir.Cluster, "")); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return forgetStale(ctx, unit) // needed if the host was rebooted meanwhile
}

// removeContainers removes what the supervisor could not remove while the Docker Engine was down. If it still is, no
// containers run.
func removeContainers(ctx context.Context, cluster string) error {
	if _, err := os.Stat(containers.Socket); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	docker, err := containers.Open(containers.Socket)
	if err == nil {
		err = docker.RemoveAll(ctx, cluster)
	}
	if errors.Is(err, containers.ErrAway) {
		return nil
	}
	return err
}

// hostKeys returns the public keys of this host's SSH server.
func hostKeys() ([]string, error) {
	files, err := filepath.Glob("/etc/ssh/ssh_host_*_key.pub")
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if fields := strings.Fields(string(text)); len(fields) >= 2 {
			keys = append(keys, fields[0]+" "+fields[1])
		}
	}
	return keys, nil
}

// clusterKey returns the key with which the controller logs in to hosts, and its public part. If none is given, it is
// the existing one, or else a new one.
func (p part) clusterKey(given string) (private, public string, err error) {
	file := p.dir.Path(layout.KeyFile)
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("the cluster's key: %w", err)
	}
	if given != "" && given != string(text) || len(text) == 0 { // a power loss may have emptied the file
		if text = []byte(given); given == "" {
			if text, err = newKey(p.dir.Cluster); err != nil {
				return "", "", err
			}
		}
		if err := statedir.WriteFile(file, text, 0o600); err != nil {
			return "", "", fmt.Errorf("the cluster's key: %w", err)
		}
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return "", "", fmt.Errorf("the cluster's key: %s: %w", file, err)
	}
	return string(text), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
}

// newKey returns a new private key.
func newKey(cluster string) ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, "trainyard cluster "+cluster)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(block), nil
}
