package swarm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

const (
	// maxObjectName is how long the name of a config object may be.
	maxObjectName = 64
	objectPrefix  = "trainyard."
	// lockPrefix tells locks from all else by their names, which is all that the Engine's events have of a config object.
	lockPrefix = "trainyard-lock."
	// digestBytes is how much of a digest stands for what does not fit into a name.
	digestBytes = 8
)

var (
	// plainPart is what a name can hold as it is. The Swarm does not tell upper case from lower, and the dot is ours.
	plainPart = regexp.MustCompile(`^[a-z0-9-]*[a-z0-9]$`)
	unfit     = regexp.MustCompile(`[^a-z0-9.-]`)
)

// objectName returns the name of the object that these parts name together, such as "trainyard.lab.group.mnist.7". Different
// parts make different names. Where they are too long in all, or hold characters that a name can't, it ends in a digest.
func objectName(parts ...string) string { return prefixedName(objectPrefix, parts) }

// lockName returns the name of the config object of a lock.
func lockName(cluster, lock string) string { return prefixedName(lockPrefix, []string{cluster, lock}) }

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
	digest := "." + hex.EncodeToString(sum[:digestBytes])
	readable := unfit.ReplaceAllString(strings.ToLower(name), "-")
	return readable[:min(len(readable), maxObjectName-len(digest))] + digest
}
