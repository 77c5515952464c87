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
	// lockPrefix and recordPrefix tell locks and records from all else by their names, which is all that the Engine's events have of a config
	// object, and all that keeps them out of a list of all others.
	lockPrefix   = "trainyard-lock."
	recordPrefix = "trainyard-record."
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

// objectName returns the name of the object that these parts name together, such as "trainyard.lab.group.mnist.7". Different
// parts make different names. Where they are too long in all, or hold characters that a name can't, it ends in a digest.
func objectName(parts ...string) string { return prefixedName(objectPrefix, parts) }

// lockName returns the name of the config object of a lock.
func lockName(cluster, lock string) string { return prefixedName(lockPrefix, []string{cluster, lock}) }

// recordName returns the name of the config object of a revision of a record.
func recordName(cluster, record, revision string) string {
	return prefixedName(recordPrefix, []string{cluster, record, revision})
}

// recordsBeginWith returns what the names of the objects of a cluster's records begin with whose names begin with a prefix: as much of it as
// none of them lacks.
func recordsBeginWith(cluster, prefix string) string {
	name := recordPrefix + cluster + "." + prefix
	return name[:min(len(name), readableName)]
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
