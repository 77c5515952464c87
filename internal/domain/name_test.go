package domain

import (
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "lab-1", "x--y", "ps0", strings.Repeat("a", 63)} {
		var ps Problems
		if CheckName(&ps, Path{"name"}, "group", name); len(ps) > 0 {
			t.Errorf("%q: %v", name, ps.Err())
		}
	}
	for name, want := range map[string]string{
		"":                      `name: Missing group name: a group needs a name: lower-case letters, digits and hyphens, such as "lab-1"`,
		"1lab":                  `name: Invalid group name: "1lab" is not a DNS label`,
		"-lab":                  `"-lab" is not a DNS label`,
		"lab-":                  `"lab-" is not a DNS label`,
		"Lab":                   `"Lab" is not a DNS label`,
		"la b":                  `"la b" is not a DNS label`,
		"lab_1":                 `"lab_1" is not a DNS label`,
		"lab.1":                 `"lab.1" is not a DNS label`,
		"../lab":                `"../lab" is not a DNS label`,
		"lab\n":                 `"lab\n" is not a DNS label`,
		"läb":                   `"läb" is not a DNS label`,
		strings.Repeat("a", 64): `has 64 characters; at most 63 are allowed`,
	} {
		var ps Problems
		CheckName(&ps, Path{"name"}, "group", name)
		if len(ps) != 1 || !strings.Contains(ps.Err().Error(), want) {
			t.Errorf("%q: %v; the problem should say: %s", name, ps, want)
		}
	}
}

func TestCheckHostName(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, name := range []string{
		"a", "gpu1", "1", "10-0-0-1", "gpu1.lab.example", "ip-10-0-0-1.ec2.internal", "3com.com",
		long + "." + long + "." + long + "." + long[:61],
	} {
		var ps Problems
		if CheckHostName(&ps, Path{"hosts", Key(name)}, name); len(ps) > 0 {
			t.Errorf("%q: %v", name, ps.Err())
		}
	}
	for name, want := range map[string]string{
		"":             `hosts[""]: Missing host name: a host needs a name: lower-case letters, digits, hyphens and dots, such as "gpu1" or "gpu1.lab.example"`,
		"Node":         `Invalid host name: "Node" is not a valid host name: use lower-case letters`,
		"gpu_1":        `"gpu_1" is not a valid host name`,
		"-gpu":         `"-gpu" is not a valid host name`,
		"gpu-":         `"gpu-" is not a valid host name`,
		"gpu1-.lab":    `"gpu1-.lab" is not a valid host name`,
		".lab":         `".lab" is not a valid host name`,
		"gpu1.":        `"gpu1." is not a valid host name`,
		"gpu1..lab":    `"gpu1..lab" is not a valid host name`,
		"../lab":       `"../lab" is not a valid host name`,
		"gpu 1":        `"gpu 1" is not a valid host name`,
		"gpu1\n":       `"gpu1\n" is not a valid host name`,
		"gpü":          `"gpü" is not a valid host name`,
		long + "a.lab": `has 64 characters; at most 63 are allowed between two dots`,
		long + "." + long + "." + long + "." + long[:62]: `has 254 characters; at most 253 are allowed`,
	} {
		var ps Problems
		CheckHostName(&ps, Path{"hosts", Key(name)}, name)
		if len(ps) != 1 || !strings.Contains(ps.Err().Error(), want) {
			t.Errorf("%q: %v; the problem should say: %s", name, ps, want)
		}
	}
}

func TestMemberNames(t *testing.T) {
	if got := MemberName("mnist", "ps", 3); got != "mnist-ps-3" {
		t.Errorf("the name is %q", got)
	}
	if got := GroupID("lab", "mnist"); got != "lab/mnist" {
		t.Errorf("the ID is %q", got)
	}
	// The longest names that a role can have are still DNS labels.
	group, role := strings.Repeat("g", 30), strings.Repeat("r", 27)
	var ps Problems
	CheckMemberNames(&ps, Path{"roles", Key(role)}, group, role)
	CheckName(&ps, nil, "member", MemberName(group, role, MaxReplicas-1))
	if len(ps) > 0 {
		t.Errorf("names of 63 characters: %v", ps.Err())
	}
	CheckMemberNames(&ps, Path{"roles", Key(role)}, group, role+"rr")
	if len(ps) != 1 ||
		!strings.Contains(ps[0].Detail, "up to 65 characters, but only 63 are allowed: shorten one by 2") {
		t.Errorf("names of 65 characters: %v", ps)
	}
}
