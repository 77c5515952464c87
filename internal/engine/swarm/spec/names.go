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
	// maxObjectName is the maximum length of a config object's name.
	maxObjectName = 64
	objectPrefix  = "trainyard."
	// lockPrefix is the prefix that distinguishes the names of locks from all others.
	lockPrefix = "trainyard-lock."
	// keptMark and quietMark come before the first dot in the names of items that no plan reads, and of those that are
	// not watched.
	keptMark  = "-kept"
	quietMark = "-quiet"
	// digestBytes is the length of the digest that replaces what does not fit into a name.
	digestBytes = 8
	// readableName is how much of a name is kept if it ends in a digest.
	readableName = maxObjectName - len(".") - 2*digestBytes
)

var (
	// plainPart is a part that a name can hold unchanged. Swarm's names are case-insensitive, and the dot is the
	// separator.
	plainPart = regexp.MustCompile(`^[a-z0-9-]*[a-z0-9]$`)
	unfit     = regexp.MustCompile(`[^a-z0-9.-]`)
)

// ObjectName returns the object name for these parts, such as "trainyard.lab.group.mnist.7". Different parts give
// different names; if they are too long, or contain characters that a name can't, it ends in a digest.
func ObjectName(parts ...string) string { return prefixedName(objectPrefix, parts) }

// LockName returns the name of a lock's config object.
func LockName(cluster, lock string) string { return prefixedName(lockPrefix, []string{cluster, lock}) }

// ItemName returns the object name for an item of a kind with these parts, as [ObjectName] does.
func ItemName(kind domain.Kind, parts ...string) string { return prefixedName(ItemPrefix(kind), parts) }

// ItemPrefix returns the name prefix of a kind's objects. The Engine's events contain no more of a config object than
// its name, and a list by prefix omits others, which may be large.
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

// PlannedPrefixes are the name prefixes of the config objects that plans read: items, and members' files.
func PlannedPrefixes() []string {
	return []string{ItemPrefix(domain.Kind{Planned: true, Watched: true}), ItemPrefix(domain.Kind{Planned: true})}
}

// IsQuiet reports whether changes of a config object with this name are not watched. That includes locks, which are
// taken, renewed and released all the time.
func IsQuiet(name string) bool {
	prefix, _, _ := strings.Cut(name, ".")
	return strings.HasPrefix(name, lockPrefix) ||
		strings.HasPrefix(name, "trainyard-") && strings.HasSuffix(prefix, quietMark)
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
