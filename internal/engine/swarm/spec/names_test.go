package spec

import (
	"regexp"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestObjectName: a Swarm accepts the names, and different things have names that differ in more than case.
func TestObjectName(t *testing.T) {
	taken := regexp.MustCompile(`^[a-zA-Z0-9]+(?:[a-zA-Z0-9-_.]*[a-zA-Z0-9])?$`)
	long := strings.Repeat("a", 63)
	names := map[string][]string{}
	for _, test := range []struct {
		parts []string
		want  string // the name if it does not end in a digest
	}{
		{[]string{"lab", "cluster", "1"}, "trainyard.lab.cluster.1"},
		{[]string{"lab", "group", "mnist", "12"}, "trainyard.lab.group.mnist.12"},
		{[]string{"lab", "group", "b--c", "1"}, "trainyard.lab.group.b--c.1"},
		{[]string{strings.Repeat("a", 44), "group", "b", "1"}, "trainyard." + strings.Repeat("a", 44) + ".group.b.1"},
		{parts: []string{strings.Repeat("a", 45), "group", "b", "1"}},
		{parts: []string{long, "cluster", "1"}},
		{parts: []string{long, "cluster", "2"}},
		{parts: []string{long, "group", long, "1"}},
		{parts: []string{long, "group", long, "2"}},
		{parts: []string{long, "group", long[1:] + "b", "2"}},
		{parts: []string{"lab", "a b"}},
		{parts: []string{"lab", "a_b"}},
		{[]string{"lab", "a-b"}, "trainyard.lab.a-b"},
		{parts: []string{"lab", "A-b"}},
		{parts: []string{"lab", "a-"}},
		{parts: []string{"lab", "Größe"}},
		{parts: []string{"lab", "a.b"}},
		{[]string{"lab", "a", "b"}, "trainyard.lab.a.b"},
		{parts: []string{"lab", ""}},
	} {
		name := ObjectName(test.parts...)
		if test.want != "" && name != test.want {
			t.Errorf("%q are named %q, not %q", test.parts, name, test.want)
		}
		if !taken.MatchString(name) || len(name) > maxObjectName || !strings.HasPrefix(name, objectPrefix) {
			t.Errorf("%q are named %q", test.parts, name)
		}
		if other, known := names[strings.ToLower(name)]; known {
			t.Errorf("%q and %q are both named %q", test.parts, other, name)
		}
		names[strings.ToLower(name)] = test.parts
	}
}

// TestLockName: a lock is recognised by its name, even that of a cluster with an unusual or long one.
func TestLockName(t *testing.T) {
	for _, cluster := range []string{"lab", "lock", strings.Repeat("a", 63)} {
		name := LockName(cluster, "group mnist")
		if !strings.HasPrefix(name, lockPrefix+cluster[:3]) || len(name) > maxObjectName {
			t.Errorf("the lock is named %q", name)
		}
		if document := ObjectName(cluster, domain.GroupKind.Name, "mnist",
			"1"); strings.HasPrefix(document, lockPrefix) {
			t.Errorf("the document %q is named like a lock", document)
		}
	}
}
