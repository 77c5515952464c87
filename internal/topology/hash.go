package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// seal is a digest of something that members share, in hex.
type seal string

func sealOf(value any) seal {
	sum := sha256.Sum256([]byte(encode(value)))
	return seal(hex.EncodeToString(sum[:16]))
}

// Hash identifies what the specification of member i is rendered from: what it runs, the rules of its role that only
// take effect with a restart, its identity and place, and the addresses that it may depend on. Equal input gives an
// equal hash, in any process. The completion rule and deadline, wait_for, triggers and placement constraints are not
// part of it, so that changing them restarts nobody; nor are the addresses of roles whose members come and go without a
// restart (domain.OnScaleNone).
//
// Members that share a specification have one hash.
//
// The hash is far cheaper than the specification: with a thousand members, TF_CONFIG alone is 25 KB per member.
func (l *Layout) Hash(i int) string { return string(l.hashes()[i]) }

// hashMembers returns the hashes of all members.
func (l *Layout) hashMembers() []seal {
	seals := l.sealRoles()
	hashes := make([]seal, len(l.members))
	for i, m := range l.members {
		if m.Shared() {
			m.Index, m.Address = 0, ""
		}
		hashes[i] = sealOf(struct {
			Role          seal
			Index, Port   int
			Host, Address string
			GPUs          domain.DeviceSet `json:",omitempty"`
		}{seals[m.Role], m.Index, m.Port, m.Host, m.Address, m.GPUs})
	}
	return hashes
}

// sealRoles returns, by role, the digest of what its members share.
func (l *Layout) sealRoles() map[string]seal {
	known := maps.Clone(l.peers)
	maps.DeleteFunc(known,
		func(role string, _ []string) bool { return l.group.Roles[role].OnScale == domain.OnScaleNone })
	peers := sealOf(known)
	seals := make(map[string]seal, len(l.group.Roles))
	for name, r := range l.group.Roles {
		seals[name] = sealOf(struct {
			Cluster, Group, Framework, Role string
			Template                        domain.Template
			Resources                       domain.Resources
			// keeps hashes from before there were limits
			Limits       domain.Resources `json:",omitzero"`
			GPUMemoryMiB int64            `json:",omitempty"`
			HidesGPUs    bool             `json:",omitempty"`
			Restart      domain.RestartRule
			GracePeriod  domain.Duration
			Peers        seal
		}{
			l.group.Cluster, l.group.Name, l.group.Framework, name,
			l.group.EffectiveTemplate(name),
			r.Resources.Requests(), r.Resources.Limits, gpuMemory(r), l.usesGPUs() && r.GPUs == nil,
			restartRule(l.group, r),
			r.Grace(),
			peers,
		})
	}
	return seals
}
