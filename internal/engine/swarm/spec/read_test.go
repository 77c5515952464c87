package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// around returns a target and a lookup that know everything that the specifications refer to.
func around(specs ...domain.MemberSpec) (Target, Lookup) {
	in := Target{
		Network: "network1", Nodes: map[string]string{"h0": "node0", "h1": "node1", "h2": "node2"},
		Others: []string{"stranger"},
		Images: map[string]References{"trainer:1": {Shared: "sha256:1111"}}, Configs: map[string]string{},
		Secrets: map[string]string{},
	}
	k := Lookup{
		Configs: map[string]swarm.Config{}, Hosts: map[string]string{"node0": "h0", "node1": "h1", "node2": "h2"},
	}
	for _, config := range Configs(specs) {
		id := "id of " + config.Name
		in.Configs[config.Name] = id
		k.Configs[id] = swarm.Config{ID: id, Spec: config}
	}
	for _, secret := range Secrets(specs) {
		in.Secrets[secret.Object.Name] = "id of " + secret.Object.Name
	}
	return in, k
}

// rendered returns the service of a specification as the Engine would return it, after a round trip through JSON.
func rendered(t interface{ Fatal(...any) }, spec domain.MemberSpec) (swarm.Service, Lookup) {
	in, k := around(spec)
	service, err := Render(spec, in, 1)
	if err != nil {
		t.Fatal(err)
	}
	return swarm.Service{ID: "service", Spec: clone(t, service)}, k
}

func clone[T any](t interface{ Fatal(...any) }, value T) (copied T) {
	if err := json.Unmarshal([]byte(encode(value)), &copied); err != nil {
		t.Fatal(err)
	}
	return copied
}

// rich is a specification with a value in every field.
func rich() domain.MemberSpec {
	return domain.MemberSpec{
		Cluster: "lab", Group: "mnist", Role: "worker", Index: 3, Name: "mnist-worker-3",
		Scheduling: domain.SchedulingPinned, Host: "h1", Address: "mnist-worker-3:9000", Hash: "c0ffee", Run: 7,
		Image: "trainer:1", Command: []string{"python3"}, Args: []string{"train.py", "--epochs", "{{3}}"},
		Env:        map[string]string{"TEMPLATE": "{{.Node.Hostname}}", "EMPTY": "", "EQUATION": "a=b=c"},
		WorkingDir: "/work",
		Mounts: []domain.Mount{
			{Source: "/data", Target: "/data", ReadOnly: true},
			{Type: domain.MountVolume, Source: "results", Target: "/results", Driver: &domain.VolumeDriver{
				Name: "local", Options: map[string]string{"type": "tmpfs", "device": "{{memory}}", "o": "size=1m"},
			}},
			{Type: domain.MountTmpfs, Target: "/scratch", SizeMiB: 64},
		},
		Files: []domain.File{{Name: "hostfile", Content: "mnist-worker-3 slots=1\n"}},
		Kept:  "/kept/{{results}}",
		Resources: domain.ResourceRequirements{
			CPUs: 0.1, MemoryMiB: 64, Limits: domain.Resources{CPUs: 0.7, MemoryMiB: 128},
		},
		Restart: domain.RestartRule{
			Condition: domain.RestartOnFailure, MaxAttempts: 6, Delay: domain.Duration(time.Second),
			Final: domain.ExitCodes{"1-127"},
		},
		GracePeriod: domain.Duration(5 * time.Second),
		Container: domain.Container{
			PullPolicy: domain.PullNever, Init: true, StopSignal: "SIGINT", ShmSizeMiB: 32,
			Ulimits: map[string]domain.Ulimit{"nofile": {Soft: 1024, Hard: 2048}, "memlock": {Soft: -1, Hard: -1}},
			HealthCheck: &domain.HealthCheck{
				Command: []string{"/healthy"}, Interval: new(domain.Duration(time.Minute)), Retries: 5,
			},
			Logging: &domain.Logging{Driver: "json-file", Options: map[string]string{"max-size": "1m"}},
			Ports:   map[string]domain.PublishedPort{"board": {Target: 6006, Published: 16006}},
			Configs: map[string]domain.ConfigFile{
				"train.yaml": {Content: "epochs: 3\n", Target: "/etc/train.yaml", Mode: 0o440},
			},
			Secrets: map[string]domain.SecretFile{"token": {Version: "1"}},
		},
	}
}

// share turns a specification into the one that all members of its role share.
func share(spec *domain.MemberSpec, address string) {
	spec.Scheduling, spec.Shared, spec.Interchangeable = domain.SchedulingEngine, true, true
	spec.Host, spec.Address, spec.Kept = "", address, "" // a kept folder belongs to one member
}

// richPool is the specification of a member of an interchangeable role.
func richPool() domain.MemberSpec {
	spec := rich()
	share(&spec, "mnist-worker:9000")
	spec.Update = domain.Update{
		Parallelism: 2, Delay: new(domain.Duration(time.Minute)), OnFailure: domain.UpdateRollback,
	}
	spec.Placement = domain.Placement{
		Strategy: domain.OnePerHost, Labels: map[string]string{"gpu": "t4"}, Hosts: []string{"h0", "h1"},
	}
	maps.Copy(spec.Env, map[string]string{
		variableIndex: "3", variableMember: spec.Name, variableHost: "", variableAddress: spec.Address,
	})
	return spec
}

// spreadPool is the specification of a member of an interchangeable role that is spread by a label.
func spreadPool() domain.MemberSpec {
	spec := richPool()
	spec.Placement.SpreadBy = "rack"
	return spec
}

func TestReadBack(t *testing.T) {
	for name, spec := range map[string]domain.MemberSpec{
		"indexed": rich(), "pooled": richPool(), "spread": spreadPool(),
		"bare": {
			Cluster: "lab", Group: "a", Role: "b", Name: "a-b-0", Scheduling: domain.SchedulingPinned, Host: "h0",
			Address: "a-b-0:1", Image: "i",
		},
	} {
		t.Run(name, func(t *testing.T) { readBack(t, spec) })
	}
}

func TestReadBackProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { readBack(t, drawSpec(t)) })
}

// readBack checks that the service of a specification reads as that specification, and not as changed.
func readBack(t interface {
	Fatal(...any)
	Errorf(string, ...any)
}, spec domain.MemberSpec) {
	service, k := rendered(t, spec)
	got := read(service.Spec, k)
	if spec.Interchangeable {
		got = Individual(got, spec.Index)
	}
	if diff := cmp.Diff(spec.Normal(), got.Normal()); diff != "" {
		t.Errorf("the specification is not read back as it was (-want +got):\n%s", diff)
	}
	if live := Drift(service, k); live != nil {
		t.Errorf("it reads as changed: %+v", live)
	}
	if !BelongsTo(service, spec.Cluster) || BelongsTo(service, spec.Cluster+"x") {
		t.Errorf("BelongsTo gets the service's cluster wrong")
	}
	in, _ := around(spec)
	again, err := Render(spec, in, 1)
	if err != nil {
		t.Fatal(err)
	}
	if next := Overlay(service.Spec, again); !Equal(next, service.Spec) {
		t.Errorf("laying the same over it changes it:\n%s", cmp.Diff(service.Spec, next))
	}
}

// drawSpec draws specifications as topology makes them, with few values for each field.
func drawSpec(t *rapid.T) domain.MemberSpec {
	text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune(`{}".-/* a`)), 0, 8, -1))
	texts := rapid.SliceOfN(text, 0, 3)
	key := rapid.StringMatching(`[a-zA-Z0-9][a-zA-Z0-9_.-]{0,9}`)
	mib := rapid.Int64Range(0, 1<<30)
	duration := rapid.Map(rapid.Int64Range(0, 1<<50), func(n int64) domain.Duration { return domain.Duration(n) })
	mode := rapid.Map(rapid.Uint32Range(0, 0o777), func(n uint32) domain.FileMode { return domain.FileMode(n) })
	cpus := rapid.Map(rapid.Int64Range(0, 1e12), func(n int64) float64 { return float64(n) / NanoCPUs })
	spec := domain.MemberSpec{
		Cluster: rapid.StringMatching(`[a-z]{1,40}`).Draw(t, "cluster"),
		Group:   rapid.StringMatching(`[a-z]{1,40}`).Draw(t, "group"),
		Role:    rapid.StringMatching(`[a-z]{1,9}`).Draw(t, "role"), Index: rapid.IntRange(0, 9999).Draw(t, "index"),
		Scheduling: domain.SchedulingPinned, Host: rapid.SampledFrom([]string{"h0", "h1"}).Draw(t, "host"),
		Hash: text.Draw(t, "hash"), Run: rapid.IntRange(0, 1e6).Draw(t, "run"),
		Image:   rapid.SampledFrom([]string{"trainer:1", "other@sha256:2222", "sha256:3333"}).Draw(t, "image"),
		Command: texts.Draw(t, "command"), Args: texts.Draw(t, "args"),
		Env:        rapid.MapOfN(rapid.StringMatching(`[A-Z_]{1,5}`), text, 0, 4).Draw(t, "env"),
		WorkingDir: text.Draw(t, "dir"),
		Resources: domain.ResourceRequirements{
			CPUs: cpus.Draw(t, "cpus"), MemoryMiB: mib.Draw(t, "memory"),
			Limits: domain.Resources{CPUs: cpus.Draw(t, "CPU limit"), MemoryMiB: mib.Draw(t, "memory limit")},
		},
		Restart: domain.RestartRule{
			Condition: rapid.SampledFrom(append([]domain.Condition{domain.RestartByGroup},
				domain.Conditions...)).Draw(t,
				"condition"),
			MaxAttempts: rapid.IntRange(0, 9).Draw(t, "attempts"), Delay: duration.Draw(t, "delay"),
			Final: rapid.SliceOfN(text, 0, 2).Draw(t, "final"),
		},
		GracePeriod: duration.Draw(t, "grace"),
	}
	spec.Name = domain.MemberName(spec.Group, spec.Role, spec.Index)
	spec.Address = fmt.Sprintf("%s:%d", spec.Name, rapid.IntRange(1, 65535).Draw(t, "port"))
	target := func(kind string, i int) string { return fmt.Sprintf("/%s%d/%s", kind, i, text.Draw(t, kind+" target")) }
	for i := range rapid.IntRange(0, 3).Draw(t, "mounts") {
		m := domain.Mount{
			Type:   rapid.SampledFrom(append([]domain.MountType{""}, domain.MountTypes...)).Draw(t, "type"),
			Target: target("mount", i), ReadOnly: rapid.Bool().Draw(t, "read only"),
		}
		if m.Type == domain.MountTmpfs {
			m.SizeMiB = mib.Draw(t, "size")
		} else {
			m.Source = text.Draw(t, "source")
		}
		if m.Type == domain.MountVolume && rapid.Bool().Draw(t, "has driver") {
			m.Driver = &domain.VolumeDriver{
				Name: text.Draw(t, "driver"), Options: map[string]string{"o": text.Draw(t, "option")},
			}
		}
		spec.Mounts = append(spec.Mounts, m)
	}
	if rapid.Bool().Draw(t, "keeps") {
		spec.Kept = target("kept", 0)
	}
	for _, name := range rapid.SliceOfNDistinct(key, 0, 2, rapid.ID).Draw(t, "files") {
		spec.Files = append(spec.Files, domain.File{Name: name, Content: text.Draw(t, "content")})
	}
	spec.Container = domain.Container{
		PullPolicy: rapid.SampledFrom(append([]domain.PullPolicy{""}, domain.PullPolicies...)).Draw(t,
			"pull"), Init: rapid.Bool().Draw(t, "init"),
		User:       rapid.SampledFrom([]string{"", "trainer", "1000:100"}).Draw(t, "user"),
		StopSignal: rapid.SampledFrom([]string{"", "SIGINT"}).Draw(t, "signal"), ShmSizeMiB: mib.Draw(t, "shm"),
		Ulimits: rapid.MapOfN(key, rapid.Custom(func(t *rapid.T) domain.Ulimit {
			return domain.Ulimit{Soft: rapid.Int64().Draw(t, "soft"), Hard: rapid.Int64().Draw(t, "hard")}
		}), 0, 2).Draw(t, "ulimits"),
		Ports: rapid.MapOfN(key, rapid.Custom(func(t *rapid.T) domain.PublishedPort {
			return domain.PublishedPort{
				Target:    rapid.IntRange(1, 65535).Draw(t, "target"),
				Published: rapid.IntRange(1, 65535).Draw(t, "published"),
				Protocol:  rapid.SampledFrom([]string{"", "tcp", "udp", "sctp"}).Draw(t, "protocol"),
			}
		}), 0, 2).Draw(t, "ports"),
	}
	if rapid.Bool().Draw(t, "health check") {
		wait := rapid.Ptr(duration, true)
		spec.Container.HealthCheck = &domain.HealthCheck{
			Command: texts.Draw(t, "check"), Interval: wait.Draw(t, "interval"), Timeout: wait.Draw(t, "timeout"),
			StartPeriod: wait.Draw(t, "start"),
			Retries:     rapid.IntRange(0, 9).Draw(t, "retries"),
		}
	}
	if rapid.Bool().Draw(t, "logging") {
		spec.Container.Logging = &domain.Logging{
			Driver: text.Draw(t, "driver"), Options: rapid.MapOfN(text, text, 0, 2).Draw(t, "options"),
		}
	}
	for i, name := range rapid.SliceOfNDistinct(key, 0, 2, rapid.ID).Draw(t, "configs") {
		if i == 0 {
			spec.Container.Configs = map[string]domain.ConfigFile{}
		}
		spec.Container.Configs[name] = domain.ConfigFile{
			Content: text.Draw(t, "content"), Target: target("config", i), Mode: mode.Draw(t, "mode"),
		}
	}
	for i, name := range rapid.SliceOfNDistinct(key, 0, 2, rapid.ID).Draw(t, "secrets") {
		if i == 0 {
			spec.Container.Secrets = map[string]domain.SecretFile{}
		}
		file := domain.SecretFile{Version: text.Draw(t, "version"), Mode: mode.Draw(t, "mode")}
		if rapid.Bool().Draw(t, "has target") {
			file.Target = target("secret", i)
		}
		spec.Container.Secrets[name] = file
	}
	if rapid.Bool().Draw(t, "shared") {
		share(&spec,
			fmt.Sprintf("%s:%d", domain.PoolName(spec.Group, spec.Role),
				rapid.IntRange(1, 65535).Draw(t, "shared port")))
		spec.Update = domain.Update{
			Parallelism: rapid.IntRange(0, 9).Draw(t, "parallelism"),
			Delay:       rapid.Ptr(duration, true).Draw(t, "update delay"),
			OnFailure:   rapid.SampledFrom(append([]domain.OnFailure{""}, domain.OnFailures...)).Draw(t, "on failure"),
		}
		spec.Placement = domain.Placement{
			Strategy: rapid.SampledFrom(append([]domain.Strategy{""}, domain.Strategies...)).Draw(t, "strategy"),
			SpreadBy: rapid.SampledFrom([]string{"", "rack", "zone"}).Draw(t, "spread by"),
			Labels:   rapid.MapOfN(key, rapid.StringMatching(`[a-z]{1,3}`), 0, 2).Draw(t, "labels"),
			Hosts: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"h0", "h1", "h2"}), 0, 3, rapid.ID).Draw(t,
				"hosts"),
		}
		if spec.Env == nil {
			spec.Env = map[string]string{}
		}
		maps.Copy(spec.Env, map[string]string{
			variableIndex: fmt.Sprint(spec.Index), variableMember: spec.Name, variableHost: "",
			variableAddress: spec.Address,
		})
	}
	return spec
}

// TestSeal pins the digests of some specifications. If a change of rendering or reading alters them, all members of
// running clusters read as changed: an apply would show that, though it restarts none of them.
func TestSeal(t *testing.T) {
	unkept := rich()
	unkept.Kept = ""
	for name, c := range map[string]struct {
		spec domain.MemberSpec
		want string
	}{
		"indexed": {unkept, "b68abb667e79aeaec2a4281078478637"},
		"keeping": {rich(), "def0a537ccafa97e9042894ff83d884c"},
		"pooled":  {richPool(), "f7f47c8a41b7423c5a3e064ed15590a7"},
		"spread":  {spreadPool(), "5f018f207c10334d12bbf45b8365122e"},
	} {
		service, _ := rendered(t, c.spec)
		if got := Seal(service.Spec); got != c.want {
			t.Errorf("%s: the seal is %s, want %s", name, got, c.want)
		}
	}
}
