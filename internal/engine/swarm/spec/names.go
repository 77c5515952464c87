package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

const (
	// maxObjectName is how long the name of a config object may be.
	maxObjectName = 64
	objectPrefix  = "trainyard."
	// lockPrefix tells locks from all else by their names.
	lockPrefix = "trainyard-lock."
	// keptMark and quietMark stand before the first dot of the names of items that no plan reads, and that are not
	// watched.
	keptMark  = "-kept"
	quietMark = "-quiet"
	// digestBytes is how much of a digest stands for what does not fit into a name.
	digestBytes = 8
	// readableName is how much of a name is left as it is where it ends in a digest.
	readableName = maxObjectName - len(".") - 2*digestBytes
)

var (
	// plainPart is what a name can hold as it is. The Swarm does not tell upper case from lower, and the dot is ours.
	plainPart = regexp.MustCompile(`^[a-z0-9-]*[a-z0-9]$`)
	unfit     = regexp.MustCompile(`[^a-z0-9.-]`)
)

// ObjectName returns the name of the object that these parts name together, such as "trainyard.lab.group.mnist.7".
// Different parts make different names. Where they are too long in all, or hold characters that a name can't, it ends
// in a digest.
func ObjectName(parts ...string) string { return prefixedName(objectPrefix, parts) }

// LockName returns the name of the config object of a lock.
func LockName(cluster, lock string) string { return prefixedName(lockPrefix, []string{cluster, lock}) }

// ItemName returns the name of the object of an item of a kind that these parts name together, as [ObjectName] does.
func ItemName(kind domain.Kind, parts ...string) string { return prefixedName(ItemPrefix(kind), parts) }

// ItemPrefix returns what the names of the objects of a kind of items begin with. A name is all that the Engine's
// events have of a config object, and a list by what names begin with carries no others along, which may be large.
func ItemPrefix(kind domain.Kind) string {
	prefix := "trainyard"
	if !kind.Planned {
		prefix += keptMark
	}
	if !kind.Watched {
		prefix += quietMark
	}
	return prefix + "."
}

// PlannedPrefixes are what the names of those config objects begin with that plans read: items, and what members
// find as files.
func PlannedPrefixes() []string {
	return []string{ItemPrefix(domain.Kind{Planned: true, Watched: true}), ItemPrefix(domain.Kind{Planned: true})}
}

// IsQuiet reports whether a change of a config object of a name concerns nobody who watches: locks are taken, renewed
// and released all the time.
func IsQuiet(name string) bool {
	prefix, _, _ := strings.Cut(name, ".")
	return strings.HasPrefix(name, lockPrefix) || strings.HasPrefix(name, "trainyard-") && strings.HasSuffix(prefix, quietMark)
}

func prefixedName(prefix string, parts []string) string {
	name := prefix + strings.Join(parts, ".")
	fits := len(name) <= maxObjectName
	for _, part := range parts {
		fits = fits && plainPart.MatchString(part)
	}
	if fits {
		return name
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	readable := unfit.ReplaceAllString(strings.ToLower(name), "-")
	return readable[:min(len(readable), readableName)] + "." + hex.EncodeToString(sum[:digestBytes])
}

// NetworkName is the name of a cluster's network.
func NetworkName(cluster string) string { return "trainyard-" + cluster }
