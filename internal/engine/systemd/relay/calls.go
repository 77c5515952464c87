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

// None is an empty parameter or result of a call.
type None struct{}

// The calls that a host answers, each about one cluster. A host outside that cluster answers Clusters, Ports, Join and
// Leave; to any other, its error is [ErrOutside].
var (
	// Clusters returns the names of the clusters that the host is in. It is about no cluster.
	Clusters = Call[None, []string]{name: "clusters"}

	// Get, List, Put and Delete are those of [engine.Store], on this host's copy; only the store host accepts writes.
	Get    = Call[engine.Key, engine.Item]{name: "get"}
	List   = Call[domain.Kind, []engine.Item]{name: "list"}
	Put    = Call[engine.Item, Written]{name: "put", once: true}
	Delete = Call[engine.Key, Ledger]{name: "delete"}

	// Locate returns this host's ledger, and the cluster.
	Locate = Call[None, Located]{name: "locate"}
	// ReadLedger returns this host's ledger.
	ReadLedger = Call[None, Ledger]{name: "ledger"}
	// Copy makes the host repeat one change of the store; if the host lacks an earlier one, the error is [ErrBehind].
	Copy = Call[Change, None]{name: "copy"}
	// Dump returns the host's whole store, and Restore replaces it.
	Dump    = Call[None, Contents]{name: "dump"}
	Restore = Call[Contents, None]{name: "restore"}

	// Acquire takes a lock by a lease, or renews it for the holder of its token, and Release ends it.
	Acquire = Call[Lease, None]{name: "acquire"}
	Release = Call[Lease, None]{name: "release", once: true}

	// The methods of [engine.Runner], for the members of this host.
	Observe = Call[string, []domain.Observed]{name: "observe"}
	Stage   = Call[Staging, None]{name: "stage"}
	Start   = Call[Starting, None]{name: "start"}
	// Staged returns the members that have a staged specification for a group's run on this host, as they will be in
	// that run.
	Staged = Call[Starting, []domain.Observed]{name: "staged"}
	// Evict removes members, and returns when they are gone.
	Evict    = Call[[]string, None]{name: "evict"}
	Stop     = Call[Stopping, None]{name: "stop"}
	Remove   = Call[[]string, None]{name: "remove"}
	Pause    = Call[[]string, None]{name: "pause"}
	Continue = Call[[]string, None]{name: "continue"}
	Logs     = Call[LogQuery, []string]{name: "logs"}
	Follow   = Call[FollowQuery, engine.LogPart]{name: "follow"}
	// Prune is that of [engine.Runner], for the part of a group on this host.
	Prune = Call[string, None]{name: "prune"}

	// Report returns the report of the host's agent, and Ports the ports in use.
	Report = Call[telemetry.Query, telemetry.Answer]{name: "report"}
	Ports  = Call[None, []int]{name: "ports"}
	// Preflight is that of [engine.Hosts].
	Preflight = Call[[]domain.MemberSpec, Findings]{name: "preflight"}

	// Join makes the host part of the cluster.
	Join = Call[Membership, Credentials]{name: "join"}
	// Introduce tells a host how its controller reaches the other hosts.
	Introduce = Call[Introduction, None]{name: "introduce"}
	// StartResidents makes the host's supervisor run whenever the host does, with the agent and, on the store host, the
	// controller. All are of the answering program's version.
	StartResidents = Call[Orders, None]{name: "start-residents"}
	// Residents returns the states of those that run on this host.
	Residents = Call[None, domain.Residents]{name: "residents"}
	// StopController ends the controller and the agent, and returns when they have ended.
	StopController = Call[None, None]{name: "stop-controller"}
	// Leave ends everything that runs for the cluster on this host, and removes everything of the cluster there.
	Leave = Call[None, None]{name: "leave"}

	// MissingFolders and RemoveFolders are those of [engine.Folders], for folders on this host.
	MissingFolders = Call[[]domain.KeptFolder, []domain.KeptFolder]{name: "missing-folders"}
	RemoveFolders  = Call[[]domain.KeptFolder, None]{name: "remove-folders"}

	// FindFiles and RemoveFiles are those of [engine.FileStore], for this host.
	FindFiles = Call[None, engine.HostFiles]{name: "find-files"}
	// UsedFiles returns the given versions that a member of this host refers to.
	UsedFiles   = Call[[]string, []string]{name: "used-files"}
	RemoveFiles = Call[[]string, None]{name: "remove-files"}
)

// The paths, below the cluster's, of streams, which are not a [Call].
const (
	watchPath = "watch"
	readPath  = "read"
	filesPath = "files"
)

// AbsentKey is the key of the item that records which hosts the controller can't reach, and since when.
var AbsentKey = engine.Key{
	Kind: domain.Kind{Name: "absent", Noun: "list of hosts that can't be reached", Watched: true}, Name: "hosts",
}

// Ledger records how current a copy of the store is.
type Ledger struct {
	// Host is the name of the host in its cluster.
	Host string `json:"host"`
	// Store is the name of the store host, and Epoch counts how often another host became it.
	Store string `json:"store"`
	Epoch int    `json:"epoch"`
	// Sequence counts all changes of the store.
	Sequence int `json:"sequence"`
}

// Newer reports whether a copy is more current than another one.
func (l Ledger) Newer(other Ledger) bool {
	return l.Epoch > other.Epoch || l.Epoch == other.Epoch && l.Sequence > other.Sequence
}

// Equal reports whether two copies are equally current.
func (l Ledger) Equal(other Ledger) bool {
	return l.Epoch == other.Epoch && l.Sequence == other.Sequence
}

// Located is a host's ledger, and the cluster's item; nil if that is not stored yet.
type Located struct {
	Ledger  Ledger       `json:"ledger"`
	Cluster *engine.Item `json:"cluster,omitempty"`
}

// Written is an item as it was stored, and the ledger after that.
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
	// Over is set if they replace the store of a store host only as it was then: if that has changed since, the error
	// is [ErrChanged].
	Over *Ledger `json:"over,omitempty"`
}

// Lease is a lock that somebody has, or wants; it expires unless it is renewed.
type Lease struct {
	Lock string `json:"lock"`
	// Token distinguishes this lease from all others of the lock.
	Token  string        `json:"token"`
	Holder engine.Holder `json:"holder"`
	// Renew means that it was held before: if somebody else has it by now, it was lost.
	Renew bool `json:"renew,omitempty"`
}

// Staging are specifications, with the values of the secrets that they refer to, and registry credentials for their
// images.
type Staging struct {
	Specs   []domain.MemberSpec `json:"specs"`
	Secrets []Secret            `json:"secrets,omitempty"`
	// Registries are registry credentials for images.
	Registries []RegistryLogin `json:"registries,omitempty"`
}

// Secret is the value of one version of a role's secret.
type Secret struct {
	Group   string `json:"group"`
	Role    string `json:"role"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Content []byte `json:"content"`
}

// Format prints which secret it is without the value, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) {
	// The printer notices a failed write.
	_, _ = fmt.Fprintf(f, "secret %q of role %q", s.Name, s.Role)
}

// RegistryLogin are the credentials for an image's registry, for members of a group.
type RegistryLogin struct {
	Group string `json:"group"`
	Image string `json:"image"`
	// Auth has the format of Docker Engines.
	Auth string `json:"auth"`
}

// Format prints which image it is for, whatever the verb.
func (l RegistryLogin) Format(f fmt.State, _ rune) {
	// The printer notices a failed write.
	_, _ = fmt.Fprintf(f, "login for image %q", l.Image)
}

// RegistryLoginOf returns the credentials for the registry of a member's image; empty if there are none.
func (s Staging) RegistryLoginOf(spec domain.MemberSpec) string {
	for _, login := range s.Registries {
		if login.Group == spec.Group && login.Image == spec.Image {
			return login.Auth
		}
	}
	return ""
}

// WithSecrets returns the specifications, each with the values of its secrets.
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

// Starting requests the start of the staged members of a group's run.
type Starting struct {
	Group string `json:"group"`
	Run   int    `json:"run"`
}

// Stopping requests the end of members that are still in the given runs.
type Stopping struct {
	Runs   map[string]int    `json:"runs"`
	Reason domain.StopReason `json:"reason"`
}

// LogQuery requests the end of a member's log.
type LogQuery struct {
	Member  string            `json:"member"`
	Options engine.LogOptions `json:"options"`
}

// FollowQuery requests what a member wrote after a position.
type FollowQuery struct {
	Member string          `json:"member"`
	From   engine.LogPlace `json:"from"`
}

// Membership makes a host part of a cluster.
type Membership struct {
	Ledger Ledger `json:"ledger"`
	// Key is the private key of the cluster; empty for the store host, which creates it.
	Key string `json:"key,omitempty"`
}

// Orders say which residents a host is to run.
type Orders struct {
	// Agents are the digests of the agents with GPU support that were installed on hosts, by architecture; nil to keep
	// the current one.
	Agents map[string]string `json:"agents"`
	// Cluster is the stored cluster, as the host's copy may be older; nil if that is known to be current.
	Cluster *domain.Cluster `json:"cluster,omitempty"`
}

// Credentials identify a host to the other hosts.
type Credentials struct {
	// Machine identifies the host, by its machine ID.
	Machine string `json:"machine"`
	// HostKeys are the public keys of its SSH server, in the format of known_hosts.
	HostKeys []string `json:"host_keys"`
	// Key is the private key of the cluster, with which its controller logs in to the hosts. All have it, as each may
	// become the store host.
	Key string `json:"key,omitempty"`
	// Anew is set if the host had nothing of the cluster before.
	Anew bool `json:"anew,omitempty"`
}

const (
	// LeaseDuration is how long a lock is held after its last renewal.
	LeaseDuration = 30 * time.Second
	// Renewals is how often it is renewed within that time.
	Renewals = 3
)

// Greeting is the first line from a host: Absent if nothing of ours is installed there, Other if it has another
// version.
const (
	Greeting = "trainyard relay 1\n"
	Absent   = "trainyard absent\n"
	Other    = "trainyard other\n"
)

// Peer is a host as the controller reaches it.
type Peer struct {
	// Login is the login address: user@host:port.
	Login string `json:"login"`
	// HostKeys are the public keys of its SSH server.
	HostKeys []string `json:"host_keys"`
}

// Introduction is what a controller has to know about the hosts.
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
