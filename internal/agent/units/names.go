//go:build linux

// Package units runs instances of members as transient systemd units. It is the only package that talks to systemd over
// D-Bus.
//
// A unit that has ended vanishes at once. What remains is a [Record], which a command of the unit itself writes before
// its control group is removed, so the end is known even if the supervisor died in the meantime.
package units

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
)

const (
	prefix        = "trainyard"
	serviceSuffix = ".service"
	sliceSuffix   = ".slice"
	// maxName is how long the name of a unit may be.
	maxName = 255
)

// Name returns the name of the unit of a member's instance. Hyphens in names are escaped, so that no two have the same.
func Name(cluster, member, instance string) string {
	return join(serviceSuffix, cluster, member, "-"+instance)
}

// Slice returns the name of the slice that holds the units of a group, or that of the cluster itself, which holds those
// of members of no group. Each hyphen that is not escaped puts a slice into another one.
func Slice(cluster, group string) string {
	if group == "" {
		return prefix + "-" + unit.UnitNameEscape(cluster) + sliceSuffix
	}
	return join(sliceSuffix, cluster, group, "")
}

// join puts a name together. One that would be too long has a digest in it, which no name looks like.
func join(suffix, cluster, name, rest string) string {
	before, after := namePrefix(cluster), rest+suffix
	escaped := unit.UnitNameEscape(name)
	if len(before)+len(escaped)+len(after) > maxName {
		digest := sha256.Sum256([]byte(name))
		escaped = "_" + hex.EncodeToString(digest[:8])
	}
	return before + escaped + after
}

// InstanceOf returns the instance that the name of a unit ends with.
func InstanceOf(name string) string {
	name = strings.TrimSuffix(name, serviceSuffix)
	return name[strings.LastIndexByte(name, '-')+1:]
}

// pattern is what the names of all services of a cluster match, and few others: to one systemd a backslash in a pattern
// stands for itself, to another for what is after it.
func pattern(cluster string) string {
	return strings.ReplaceAll(namePrefix(cluster), `\`, "?") + "*" + serviceSuffix
}

// namePrefix is what the names of all services of a cluster begin with.
func namePrefix(cluster string) string { return prefix + "-" + unit.UnitNameEscape(cluster) + "-" }
