package domain

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MaxNameLength is the longest DNS label, and so the longest name of a member (RFC 1035).
const MaxNameLength = 63

// MaxReplicas limits the members of a role, so that their indexes have at most four digits.
const MaxReplicas = 10_000

// maxHostNameLength is the longest host name that DNS allows (RFC 1123).
const maxHostNameLength = 253

// reservedIndexDigits is the room that a member's name keeps for its index.
const reservedIndexDigits = 4

var (
	dnsLabel = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)
	// hostLabel is a label of a host name, which may begin with a digit.
	hostLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
)

// CheckName adds a problem if name is not a DNS label: lower-case letters, digits and hyphens, a letter first, no
// hyphen last, at most 63 characters.
func CheckName(ps *Problems, path Path, what, name string) {
	switch {
	case name == "":
		ps.Add(path, "Missing "+what+" name",
			"a %s needs a name: lower-case letters, digits and hyphens, such as \"lab-1\"", what)
	case len(name) > MaxNameLength:
		ps.Add(path, "Invalid "+what+" name", "%q has %d characters; at most %d are allowed", name, len(name),
			MaxNameLength)
	case !dnsLabel.MatchString(name):
		ps.Add(path, "Invalid "+what+" name", "%q is not a DNS label: use lower-case letters, digits and hyphens, "+
			"starting with a letter and not ending with a hyphen", name)
	}
}

// CheckHostName adds a problem if name is not a lower-case host name (RFC 1123): labels of letters, digits and hyphens,
// no hyphen first or last, at most 63 characters each, joined by dots, at most 253 characters in total.
func CheckHostName(ps *Problems, path Path, name string) {
	if name == "" {
		ps.Add(path, "Missing host name",
			"a host needs a name: lower-case letters, digits, hyphens and dots, such as \"gpu1\" or "+
				"\"gpu1.lab.example\"")
		return
	}
	if len(name) > maxHostNameLength {
		ps.Add(path, "Invalid host name", "%q has %d characters; at most %d are allowed", name, len(name),
			maxHostNameLength)
		return
	}
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case len(label) > MaxNameLength:
			ps.Add(path, "Invalid host name", "its part %q has %d characters; at most %d are allowed between two dots",
				label, len(label), MaxNameLength)
			return
		case !hostLabel.MatchString(label):
			ps.Add(path, "Invalid host name", "%q is not a valid host name: use lower-case letters, digits and "+
				"hyphens, without a hyphen first or last, in parts separated by dots", name)
			return
		}
	}
}

// MemberName returns the stable name of a member, <group>-<role>-<index>.
func MemberName(group, role string, index int) string {
	return group + "-" + role + "-" + strconv.Itoa(index)
}

// PoolName returns the name that the members of an interchangeable role share, <group>-<role>.
func PoolName(group, role string) string { return group + "-" + role }

// CheckMemberNames adds a problem if the names of a role's members would be too long for DNS labels.
func CheckMemberNames(ps *Problems, path Path, group, role string) {
	longest := len(group) + len(role) + 2 + reservedIndexDigits
	if longest > MaxNameLength {
		ps.Add(path, "Names too long", "members are named <group>-<role>-<index>; with %q and %q, that is up to %d "+
			"characters, but only %d are allowed: shorten one by %d",
			group, role, longest, MaxNameLength, longest-MaxNameLength)
	}
}

// GroupID returns the address of a group within an installation, <cluster>/<group>, as used by import.
func GroupID(cluster, group string) string {
	return fmt.Sprintf("%s/%s", cluster, group)
}
