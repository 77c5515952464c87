package relay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// None is what a call takes or returns that needs nothing.
type None struct{}

// The calls that a host answers, each about one cluster.
var (
	// Clusters returns the names of the clusters that the host is in. It is about none.
	Clusters = Call[None, []string]{name: "clusters"}

	// Get, List, Put and Delete are those of [engine.Store], on this host's copy; writes are for the store host alone.
	Get    = Call[engine.Key, engine.Item]{name: "get"}
	List   = Call[domain.Kind, []engine.Item]{name: "list"}
	Put    = Call[engine.Item, Written]{name: "put", once: true}
	Delete = Call[engine.Key, Ledger]{name: "delete"}

	// Locate returns how current this host's copy is, with the cluster in it. Where the host is in no such cluster it
	// is [engine.ErrNotFound].
	Locate = Call[None, Located]{name: "locate"}
	// ReadLedger returns how current this host's copy is. Where the host is in no such cluster it is
	// [engine.ErrNotFound].
	ReadLedger = Call[None, Ledger]{name: "ledger"}
	// Copy has the host repeat one change of the store; a host that misses an earlier one answers [ErrBehind].
	Copy = Call[Change, None]{name: "copy"}
	// Dump returns all that the host has of the store, and Restore replaces that.
	Dump    = Call[None, Contents]{name: "dump"}
	Restore = Call[Contents, None]{name: "restore"}

	// Acquire takes a lock by a lease, or renews it for who has its token, and Release ends it.
	Acquire = Call[Lease, None]{name: "acquire"}
	Release = Call[Lease, None]{name: "release", once: true}

	// What an [engine.Runner] does, for the members of this host.
	Observe = Call[string, []domain.Observed]{name: "observe"}
	Stage   = Call[Staging, None]{name: "stage"}
	Start   = Call[Starting, None]{name: "start"}
	// Staged returns the members whose specification for a run of a group is staged on this host, as they will be in
	// it.
	Staged = Call[Starting, []domain.Observed]{name: "staged"}
	// Evict removes members, and returns when they are gone.
	Evict    = Call[[]string, None]{name: "evict"}
	Stop     = Call[Stopping, None]{name: "stop"}
	Remove   = Call[[]string, None]{name: "remove"}
	Pause    = Call[[]string, None]{name: "pause"}
	Continue = Call[[]string, None]{name: "continue"}
	Logs     = Call[LogQuery, []string]{name: "logs"}
	Follow   = Call[FollowQuery, engine.LogPart]{name: "follow"}
	// Prune is that of [engine.Runner], for what of a group is on this host.
	Prune = Call[string, None]{name: "prune"}

	// Report returns what the host's agent tells, and Ports on which ports something listens.
	Report = Call[telemetry.Query, telemetry.Answer]{name: "report"}
	Ports  = Call[None, []int]{name: "ports"}
	// Preflight is that of [engine.Hosts].
	Preflight = Call[[]domain.MemberSpec, Findings]{name: "preflight"}

	// Join makes the host part of the cluster.
	Join = Call[Membership, Credentials]{name: "join"}
	// Introduce tells a host how its controller would reach the others.
	Introduce = Call[Introduction, None]{name: "introduce"}
	// StartResidents has the host's supervisor run, whenever the host does, and run the agent, and on the store host
	// the controller: all of the version that answers.
	StartResidents = Call[Orders, None]{name: "start-residents"}
	// Residents returns the states of those that run on this host.
	Residents = Call[None, domain.Residents]{name: "residents"}
	// StopController ends the controller and the agent, and returns when they have ended.
	StopController = Call[None, None]{name: "stop-controller"}
	// Leave ends all that runs for the cluster on this host, and removes all that is there of it.
	Leave = Call[None, None]{name: "leave"}

	// MissingFolders and RemoveFolders are those of [engine.Folders], for folders on this host.
	MissingFolders = Call[[]domain.KeptFolder, []domain.KeptFolder]{name: "missing-folders"}
	RemoveFolders  = Call[[]domain.KeptFolder, None]{name: "remove-folders"}

	// FindFiles and RemoveFiles are those of [engine.FileStore], for this host.
	FindFiles = Call[None, engine.HostFiles]{name: "find-files"}
	// UsedFiles returns those of some versions that a member of this host refers to.
	UsedFiles   = Call[[]string, []string]{name: "used-files"}
	RemoveFiles = Call[[]string, None]{name: "remove-files"}
)

// The paths, below that of the cluster, of what is no [Call].
const (
	watchPath = "watch"
	readPath  = "read"
	filesPath = "files"
)

// AbsentKey is that of the one item that says which hosts the controller can't reach, and since when.
var AbsentKey = engine.Key{
	Kind: domain.Kind{Name: "absent", Noun: "list of hosts that can't be reached", Watched: true}, Name: "hosts",
}

// Ledger tells how current a copy of the store is.
type Ledger struct {
	// Host is the name of the host in its cluster.
	Host string `json:"host"`
	// Store is the name of the store host, and Epoch counts how often another host became it.
	Store string `json:"store"`
	Epoch int    `json:"epoch"`
	// Sequence counts the changes of the store in all.
	Sequence int `json:"sequence"`
}

// Newer reports whether a copy is more current than another one.
func (l Ledger) Newer(other Ledger) bool {
	return l.Epoch > other.Epoch || l.Epoch == other.Epoch && l.Sequence > other.Sequence
}

// Located is a host's ledger, and the cluster's item; nil where it is not stored yet.
type Located struct {
	Ledger  Ledger       `json:"ledger"`
	Cluster *engine.Item `json:"cluster,omitempty"`
}

// Written is an item as it was stored, and the ledger since.
type Written struct {
	Item   engine.Item `json:"item"`
	Ledger Ledger      `json:"ledger"`
}

// Change is one change of the store: an item that was written, or the key of one that was deleted.
type Change struct {
	Ledger  Ledger       `json:"ledger"`
	Item    *engine.Item `json:"item,omitempty"`
	Deleted *engine.Key  `json:"deleted,omitempty"`
}

// Contents are all items of the store.
type Contents struct {
	Ledger Ledger        `json:"ledger"`
	Items  []engine.Item `json:"items"`
}

// Lease is a lock that somebody has, or wants, until it is not renewed for a while.
type Lease struct {
	Lock string `json:"lock"`
	// Token tells this lease from all others of the lock.
	Token  string        `json:"token"`
	Holder engine.Holder `json:"holder"`
	// Renew tells that it was held before: if it is another's by now, it was lost.
	Renew bool `json:"renew,omitempty"`
}

// Staging are specifications, with the contents of the secrets that they refer to, and what registries are shown for
// their images.
type Staging struct {
	Specs   []domain.MemberSpec `json:"specs"`
	Secrets []Secret            `json:"secrets,omitempty"`
	// Registries are what registries are shown.
	Registries []RegistryLogin `json:"registries,omitempty"`
}

// Secret is the content of one version of a role's secret.
type Secret struct {
	Group   string `json:"group"`
	Role    string `json:"role"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Content []byte `json:"content"`
}

// Format prints whose secret it is, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) {
	// A failed write is the printer's to notice.
	_, _ = fmt.Fprintf(f, "secret %q of role %q", s.Name, s.Role)
}

// RegistryLogin is what is shown to the registry of an image, for members of a group.
type RegistryLogin struct {
	Group string `json:"group"`
	Image string `json:"image"`
	// Auth is in the form that Docker Engines take.
	Auth string `json:"auth"`
}

// Format prints which image it is for, whatever the verb.
func (l RegistryLogin) Format(f fmt.State, _ rune) {
	// A failed write is the printer's to notice.
	_, _ = fmt.Fprintf(f, "login for image %q", l.Image)
}

// RegistryLoginOf returns what is shown to the registry of a member's image; empty where nothing is.
func (s Staging) RegistryLoginOf(spec domain.MemberSpec) string {
	for _, login := range s.Registries {
		if login.Group == spec.Group && login.Image == spec.Image {
			return login.Auth
		}
	}
	return ""
}

// WithSecrets returns the specifications, each with the contents of its secrets.
func (s Staging) WithSecrets() []domain.MemberSpec {
	for i := range s.Specs {
		spec := &s.Specs[i]
		own := map[string][]byte{}
		for _, secret := range s.Secrets {
			file, refers := spec.Container.Secrets[secret.Name]
			if refers && secret.Group == spec.Group && secret.Role == spec.Role && secret.Version == file.Version {
				own[secret.Name] = secret.Content
			}
		}
		if len(own) > 0 {
			spec.Secrets = domain.SecretValues{spec.Role: own}
		}
	}
	return s.Specs
}

// Starting asks for the staged members of a group's run to be started.
type Starting struct {
	Group string `json:"group"`
	Run   int    `json:"run"`
}

// Stopping asks for members to be stopped that are in the runs that are given by their names.
type Stopping struct {
	Runs   map[string]int    `json:"runs"`
	Reason domain.StopReason `json:"reason"`
}

// LogQuery asks for the end of a member's log.
type LogQuery struct {
	Member  string            `json:"member"`
	Options engine.LogOptions `json:"options"`
}

// FollowQuery asks for what a member wrote from a place on.
type FollowQuery struct {
	Member string          `json:"member"`
	From   engine.LogPlace `json:"from"`
}

// Membership makes a host part of a cluster.
type Membership struct {
	Ledger Ledger `json:"ledger"`
	// Key is the private key of the cluster; empty for the store host, which makes it.
	Key string `json:"key,omitempty"`
}

// Orders say what residents a host is to run.
type Orders struct {
	// Agents are the agents that know GPUs and were brought to hosts, by architecture and by their digests; nil to
	// leave it as it is.
	Agents map[string]string `json:"agents"`
	// Cluster is the cluster as it is stored, as the host's copy may be older; nil where that is known to be current.
	Cluster *domain.Cluster `json:"cluster,omitempty"`
}

// Credentials are what the other hosts know a host by.
type Credentials struct {
	// Machine identifies the host, by its machine ID.
	Machine string `json:"machine"`
	// HostKeys are the public keys of its SSH server, each as in known_hosts.
	HostKeys []string `json:"host_keys"`
	// Key is the private key of the cluster, by which its controller logs in to the hosts. All have it, as each may
	// come to be the store host.
	Key string `json:"key,omitempty"`
}

const (
	// LeaseDuration is for how long a lock is held after it was last renewed.
	LeaseDuration = 30 * time.Second
	// Renewals is how often it is renewed within that.
	Renewals = 3
)

// Greeting is what a host writes first: Absent where nothing of ours is there, Other where that is of another version.
const (
	Greeting = "trainyard relay 1\n"
	Absent   = "trainyard absent\n"
	Other    = "trainyard other\n"
)

// Peer is a host as the controller reaches it.
type Peer struct {
	// Login is where it logs in: user@host:port.
	Login string `json:"login"`
	// HostKeys are the public keys of its SSH server.
	HostKeys []string `json:"host_keys"`
}

// Introduction is what a controller has to know of the hosts.
type Introduction struct {
	// Self is the name of the host that it runs on.
	Self  string          `json:"self"`
	Peers map[string]Peer `json:"peers"`
}

// KnownHosts returns the keys of the hosts as a known_hosts file.
func (i Introduction) KnownHosts() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(i.Peers)) {
		peer := i.Peers[name]
		address := peer.Login[strings.LastIndex(peer.Login, "@")+1:]
		for _, key := range peer.HostKeys {
			fmt.Fprintf(&b, "%s %s\n", knownhosts.Normalize(address), key)
		}
	}
	return b.String()
}
