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
	// maxName is the maximum length of a unit's name.
	maxName = 255
)

// Name returns the unit name of a member's instance. It escapes hyphens in names, so that it is unique.
func Name(cluster, member, instance string) string {
	return join(serviceSuffix, cluster, member, "-"+instance)
}

// Slice returns the name of the slice with the units of a group, or, without a group, of the cluster's slice, which
// also holds members without a group. Each unescaped hyphen starts a nested slice.
func Slice(cluster, group string) string {
	if group == "" {
		return prefix + "-" + unit.UnitNameEscape(cluster) + sliceSuffix
	}
	return join(sliceSuffix, cluster, group, "")
}

// join composes a name. A part that would make it too long is replaced by a digest, which can't be mistaken for a name.
func join(suffix, cluster, name, rest string) string {
	before, after := namePrefix(cluster), rest+suffix
	escaped := unit.UnitNameEscape(name)
	if len(before)+len(escaped)+len(after) > maxName {
		digest := sha256.Sum256([]byte(name))
		escaped = "_" + hex.EncodeToString(digest[:8])
	}
	return before + escaped + after
}

// InstanceOf returns the instance at the end of a unit's name.
func InstanceOf(name string) string {
	name = strings.TrimSuffix(name, serviceSuffix)
	return name[strings.LastIndexByte(name, '-')+1:]
}

// pattern matches the names of all services of a cluster, and few others: systemd versions differ in whether a
// backslash in a pattern is literal or escapes the next character.
func pattern(cluster string) string {
	return strings.ReplaceAll(namePrefix(cluster), `\`, "?") + "*" + serviceSuffix
}

// namePrefix is the prefix of the names of all services of a cluster.
func namePrefix(cluster string) string { return prefix + "-" + unit.UnitNameEscape(cluster) + "-" }
