package topology

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// hashed returns a group that sets everything a hash may depend on.
func hashed() domain.Group {
	g := group("tensorflow", map[string]int{"ps": 2, "worker": 3})
	g.Template = domain.Template{
		Image: "trainer:1.2", Command: []string{"train"}, WorkingDir: "/work",
		Env:    map[string]string{"A": "1", "B": "2", "C": "3", "D": "4"},
		Mounts: []domain.Mount{{Source: "/data", Target: "/data"}},
	}
	return g
}

func hashes(g domain.Group, move func(m *domain.Member)) map[string]string {
	l := place(g)
	if move != nil {
		members := slices.Clone(l.members)
		for i := range members {
			move(&members[i])
		}
		l = NewLayout(g, members, l.filesDir)
	}
	byName := map[string]string{}
	for i, m := range l.members {
		byName[m.Name] = l.Hash(i)
	}
	return byName
}

func edit(role string, change func(r *domain.Role)) func(g *domain.Group) {
	return func(g *domain.Group) {
		r := g.Roles[role]
		change(&r)
		g.Roles[role] = r
	}
}

// TestHash changes one thing at a time, and checks whose hashes change.
func TestHash(t *testing.T) {
	const nobody, workers, everybody = "", "mnist-worker-", "mnist-"
	for name, test := range map[string]struct {
		change  func(g *domain.Group)
		changed string // prefix of the names of the members that change; empty means nobody
	}{
		"nothing":                   {func(*domain.Group) {}, nobody},
		"image":                     {func(g *domain.Group) { g.Image = "trainer:1.3" }, everybody},
		"command":                   {func(g *domain.Group) { g.Command = []string{"train", "fast"} }, everybody},
		"args":                      {func(g *domain.Group) { g.Args = []string{"fast"} }, everybody},
		"working dir":               {func(g *domain.Group) { g.WorkingDir = "/" }, everybody},
		"value of a variable":       {func(g *domain.Group) { g.Env["A"] = "2" }, everybody},
		"mount":                     {func(g *domain.Group) { g.Template.Mounts[0].ReadOnly = true }, everybody},
		"framework":                 {func(g *domain.Group) { g.Framework = "tensorflow_v1" }, everybody},
		"scope of restarts":         {func(g *domain.Group) { g.RestartScope = domain.ScopeGroup }, everybody},
		"one more parameter server": {edit("ps", func(r *domain.Role) { r.Replicas = new(3) }), everybody},
		"one more worker":           {edit("worker", func(r *domain.Role) { r.Replicas = new(4) }), everybody},
		"image of a role":           {edit("worker", func(r *domain.Role) { r.Image = "x" }), workers},
		"variable of a role": {
			edit("worker", func(r *domain.Role) { r.Env = map[string]string{"E": "5"} }), workers,
		},
		"CPUs":   {edit("worker", func(r *domain.Role) { r.Resources.CPUs = 2 }), workers},
		"memory": {edit("worker", func(r *domain.Role) { r.Resources.MemoryMiB = 2 }), workers},
		"restart condition": {
			edit("worker", func(r *domain.Role) { r.Restart.Condition = "always" }), workers,
		},
		"restart attempts": {
			edit("worker", func(r *domain.Role) { r.Restart.MaxAttempts = new(1) }), workers,
		},
		"restart delay": {
			edit("worker", func(r *domain.Role) { r.Restart.Delay = new(domain.Duration(1)) }), workers,
		},
		"exit codes": {
			edit("worker", func(r *domain.Role) { r.ExitCodes = &domain.ExitCodeRule{Final: domain.ExitCodes{"1"}} }),
			workers,
		},
		"grace period": {
			edit("worker", func(r *domain.Role) { r.GracePeriod = new(domain.Duration(1)) }), workers,
		},
		"a default written out": {
			edit("worker", func(r *domain.Role) { r.Restart.MaxAttempts = new(domain.DefaultMaxAttempts) }), nobody,
		},
		"a group's value written out": {edit("worker", func(r *domain.Role) { r.Image = "trainer:1.2" }), nobody},
		"container": {
			func(g *domain.Group) { g.Container = &domain.Container{ShmSizeMiB: 64} }, everybody,
		},
		"container of a role": {
			edit("worker", func(r *domain.Role) { r.Container = &domain.Container{Init: true} }), workers,
		},
		"no args of a role, as of its group": {
			edit("worker", func(r *domain.Role) { r.Args = []string{} }), nobody,
		},
		"no mounts of a role": {edit("worker", func(r *domain.Role) { r.Mounts = []domain.Mount{} }), workers},
		"CPU limit":           {edit("worker", func(r *domain.Role) { r.Resources.Limits.CPUs = 4 }), workers},
		"memory limit": {
			edit("worker", func(r *domain.Role) { r.Resources.Limits.MemoryMiB = 4 }), workers,
		},
		"hosts": {
			edit("worker", func(r *domain.Role) { r.Placement.Hosts = []string{"a"} }), nobody,
		},
		"replicas left out": {
			func(g *domain.Group) { g.Roles["chief"] = domain.Role{Replicas: new(0)} }, nobody,
		},
		"placement": {
			edit("worker", func(r *domain.Role) { r.Placement.Strategy = domain.Pack }), nobody,
		},
		"label to spread by": {
			edit("worker", func(r *domain.Role) { r.Placement.SpreadBy = "rack" }), nobody,
		},
		"labels": {
			edit("worker", func(r *domain.Role) { r.Placement.Labels = map[string]string{"a": "b"} }), nobody,
		},
		"first port, same addresses": {edit("worker", func(r *domain.Role) { r.Port = new(2222) }), nobody},
		"rule of completion":         {func(g *domain.Group) { g.Completion.When = "all" }, nobody},
		"deadline": {
			func(g *domain.Group) { g.Completion.Deadline = new(domain.Duration(1)) }, nobody,
		},
		"triggers": {func(g *domain.Group) { g.Triggers = map[string]string{"a": "b"} }, nobody},
		"wait for": {func(g *domain.Group) { g.WaitFor = domain.WaitCompleted }, nobody},
		"cluster":  {func(g *domain.Group) { g.Cluster = "lab2" }, everybody},
		"the same variables once more": {
			func(g *domain.Group) { g.Env = map[string]string{"D": "4", "C": "3", "B": "2", "A": "1"} }, nobody,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := hashes(hashed(), nil)
			g := hashed()
			test.change(&g)
			after := hashes(g, nil)
			for member, hash := range before {
				want := test.changed != nobody && strings.HasPrefix(member, test.changed)
				if changed := after[member] != hash; changed != want {
					t.Errorf("hash of %s changed: %v, want %v", member, changed, want)
				}
			}
		})
	}
}

// TestHashAndPlace moves one member, and checks whose hashes change.
func TestHashAndPlace(t *testing.T) {
	for name, test := range map[string]struct {
		framework string
		counts    map[string]int
		moved     string
		changed   []string
	}{
		"an indexed member is known to all": {"tensorflow", map[string]int{"ps": 1, "worker": 2}, "mnist-worker-1",
			[]string{"mnist-ps-0", "mnist-worker-0", "mnist-worker-1"}},
		"an interchangeable one to nobody": {"spark", map[string]int{"master": 1, "worker": 2}, "mnist-worker-1",
			[]string{"mnist-worker-1"}},
		"the master of interchangeable ones to all": {"spark", map[string]int{"master": 1, "worker": 2},
			"mnist-master-0",
			[]string{"mnist-master-0", "mnist-worker-0", "mnist-worker-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(test.framework, test.counts)
			before := hashes(g, nil)
			after := hashes(g, func(m *domain.Member) {
				if m.Name == test.moved {
					m.Address, m.Port = "elsewhere:1", 1
				}
			})
			for member, hash := range before {
				if changed, want := after[member] != hash, slices.Contains(test.changed, member); changed != want {
					t.Errorf("hash of %s changed: %v, want %v", member, changed, want)
				}
			}
		})
	}
}

// TestHashAndHost checks that moving a member to another host with the same address changes only its own hash.
func TestHashAndHost(t *testing.T) {
	before := hashes(hashed(), nil)
	after := hashes(hashed(), func(m *domain.Member) {
		if m.Name == "mnist-ps-1" {
			m.Host = "elsewhere"
		}
	})
	for member, hash := range before {
		if changed, want := after[member] != hash, member == "mnist-ps-1"; changed != want {
			t.Errorf("hash of %s changed: %v, want %v", member, changed, want)
		}
	}
}

func TestHashGrowsInterchangeableRolesInPeace(t *testing.T) {
	small := hashes(group("ray", map[string]int{"head": 1, "worker": 2}), nil)
	large := hashes(group("ray", map[string]int{"head": 1, "worker": 5}), nil)
	for member, hash := range small {
		if large[member] != hash {
			t.Errorf("%s would restart because the role of others grew", member)
		}
	}
}

// TestHashIsAsItWas checks that members running with an earlier build's hash are not restarted by this one.
func TestHashIsAsItWas(t *testing.T) {
	for member, want := range map[string]string{
		"mnist-ps-0": "a8439e199ba1bb9d16fd6c696accadc1", "mnist-worker-2": "51129eb09cb93b9ee804bc86424edcff",
	} {
		if got := hashes(hashed(), nil)[member]; got != want {
			t.Errorf("the hash of %s is %s, and was %s", member, got, want)
		}
	}
}

// TestHashAndOnScale checks that members can come and go in a role whose scaling restarts nobody, while everything else
// about other members still counts.
func TestHashAndOnScale(t *testing.T) {
	const nobody, everybody = "", "mnist-"
	inPeace := hashed()
	edit("worker", func(r *domain.Role) { r.OnScale = domain.OnScaleNone })(&inPeace)
	for name, test := range map[string]struct {
		change  func(g *domain.Group)
		changed string
	}{
		"one more worker":           {edit("worker", func(r *domain.Role) { r.Replicas = new(4) }), nobody},
		"one worker less":           {edit("worker", func(r *domain.Role) { r.Replicas = new(2) }), nobody},
		"one more parameter server": {edit("ps", func(r *domain.Role) { r.Replicas = new(3) }), everybody},
		"the default for others":    {edit("ps", func(r *domain.Role) { r.OnScale = domain.OnScaleRestart }), nobody},
	} {
		t.Run(name, func(t *testing.T) {
			g := inPeace
			g.Roles = map[string]domain.Role{"ps": inPeace.Roles["ps"], "worker": inPeace.Roles["worker"]}
			test.change(&g)
			before, after := hashes(inPeace, nil), hashes(g, nil)
			for member, hash := range before {
				now, there := after[member]
				if changed := now != hash; there && changed != (test.changed == everybody) {
					t.Errorf("hash of %s changed: %v", member, changed)
				}
			}
		})
	}
	// A member that starts learns all addresses.
	if got := specOf(t, place(inPeace), "worker",
		2).Env["TRAINYARD_CLUSTER_SPEC"]; !strings.Contains(got, "worker2:2222") || !strings.Contains(got, "ps1:2222") {
		t.Errorf("a member that starts gets %s", got)
	}
}

// TestHashOfShared checks that members with a shared specification have one hash, different from those of other roles.
func TestHashOfShared(t *testing.T) {
	after := hashes(group("spark", map[string]int{"master": 1, "worker": 3}), func(m *domain.Member) {
		if m.Role == "worker" {
			m.Scheduling, m.Host = domain.SchedulingEngine, ""
		}
	})
	if after["mnist-worker-0"] != after["mnist-worker-1"] || after["mnist-worker-0"] != after["mnist-worker-2"] ||
		after["mnist-worker-0"] == after["mnist-master-0"] {
		t.Errorf("the hashes are %v", after)
	}
}

func TestHashDistinguishesMembers(t *testing.T) {
	seen := map[string]string{}
	for member, hash := range hashes(hashed(), func(m *domain.Member) { m.Host, m.Address, m.Port = "h", "h:1", 1 }) {
		if other, found := seen[hash]; found {
			t.Errorf("%s and %s have the same hash", member, other)
		}
		seen[hash] = member
	}
}

// TestHashIsStable hashes in another process, as nothing specific to this one, such as map order or a seed, may matter.
func TestHashIsStable(t *testing.T) {
	const asChild = "HASH_TEST_CHILD"
	if os.Getenv(asChild) != "" {
		_ = json.NewEncoder(os.Stdout).Encode(hashes(hashed(), nil))
		os.Exit(0)
	}
	here := hashes(hashed(), nil)
	child := exec.Command(os.Args[0], "-test.run=^TestHashIsStable$")
	child.Env = append(os.Environ(), asChild+"=1")
	out, err := child.Output()
	if err != nil {
		t.Fatal(err)
	}
	var there map[string]string
	if err := json.Unmarshal(out, &there); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	for member, hash := range here {
		if there[member] != hash {
			t.Errorf("hash of %s is %s here and %s there", member, hash, there[member])
		}
		if len(hash) != 32 {
			t.Errorf("hash %q of %s has %d digits, want 32", hash, member, len(hash))
		}
	}
}
