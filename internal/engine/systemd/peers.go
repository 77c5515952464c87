package systemd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// localAddress stands for the host that the controller runs on.
const localAddress = "local"

// peers is the controller's knowledge of its cluster's hosts.
type peers struct {
	// dir is the cluster's state directory.
	dir string
	// read is the modification time of the file when it was read.
	read       time.Time
	introduced relay.Introduction
}

// introduced returns what the controller was told about the hosts, and reads it again if an apply has changed it since,
// for example when a host joined. Hosts are reached with the cluster's key.
func (r *reach) introduced() (relay.Introduction, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.peers
	file := filepath.Join(p.dir, layout.PeersFile)
	info, err := os.Stat(file)
	if err == nil && info.ModTime().Equal(p.read) {
		return p.introduced, nil
	}
	var next relay.Introduction
	var text []byte
	if err == nil {
		if text, err = os.ReadFile(file); err == nil {
			err = json.Unmarshal(text, &next)
		}
	}
	if err != nil {
		return next, fmt.Errorf("reading the other hosts of cluster %q: %w", r.cluster, err)
	}
	for _, before := range p.introduced.Peers {
		address := "ssh://" + before.Login
		if h := r.hosts[address]; h != nil && !knows(next, before) {
			delete(r.hosts, address)
			go h.Close() // it waits for a connection attempt in progress
		}
	}
	p.introduced, p.read = next, info.ModTime()
	r.credentials = sshclient.Credentials{
		IdentityFiles: []string{filepath.Join(p.dir, layout.KeyFile)}, KnownHostsText: next.KnownHosts(),
	}
	return next, nil
}

// knows reports whether a host is reached as before.
func knows(introduced relay.Introduction, peer relay.Peer) bool {
	for _, known := range introduced.Peers {
		if known.Login == peer.Login && slices.Equal(known.HostKeys, peer.HostKeys) {
			return true
		}
	}
	return false
}
