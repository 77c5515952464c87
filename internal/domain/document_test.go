package domain

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRerunAndRestart(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := started.Add(time.Hour)
	doc := GroupDocument{Header: Header{Revision: 7}, MinRun: 2}
	for _, step := range []struct {
		name string
		do   func()
		want GroupDocument
	}{
		{
			"restart", func() { doc.Restart(started) },
			GroupDocument{Header: Header{Revision: 7}, MinRun: 8, GroupRestarts: 1, StartedAt: &started},
		},
		{
			"restart again", func() { doc.Revision = 9; doc.Restart(later) },
			GroupDocument{Header: Header{Revision: 9}, MinRun: 10, GroupRestarts: 2, StartedAt: &later},
		},
		{
			"restart without an attempt", func() { doc.Revision = 10; doc.Resume(started) },
			GroupDocument{Header: Header{Revision: 10}, MinRun: 11, GroupRestarts: 2, StartedAt: &started},
		},
		{"rerun", func() { doc.Revision = 12; doc.Rerun() }, GroupDocument{Header: Header{Revision: 12}, MinRun: 13}},
		{
			"rerun where there were earlier runs", func() { doc.EarlierRuns = 20; doc.Rerun() },
			GroupDocument{Header: Header{Revision: 12}, MinRun: 33, EarlierRuns: 20},
		},
	} {
		step.do()
		if diff := cmp.Diff(step.want, doc); diff != "" {
			t.Errorf("after a %s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestDurationText(t *testing.T) {
	for text, want := range map[string]Duration{
		`"30s"`: seconds(30), `"90s"`: seconds(90), `"1h30m"`: seconds(5400), `"0s"`: 0, `"0"`: 0, `"-5s"`: seconds(-5),
		`"1.5s"`: Duration(1500 * time.Millisecond),
	} {
		var got Duration
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is read as %s (%v), not %s", text, got, err, want)
		}
	}
	for _, text := range []string{`""`, `"30"`, `"30 s"`, `"soon"`, `"1d"`} {
		var got Duration
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is read as %s", text, got)
		}
	}
	written, err := json.Marshal(seconds(90))
	if err != nil || string(written) != `"1m30s"` {
		t.Errorf("90 s are written as %s (%v)", written, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		want := Duration(rapid.Int64().Draw(t, "duration"))
		roundTrip(t, want)
	})
}

// roundTrip fails unless a value is read as it was written.
func roundTrip[V any](t rapid.TB, want V) {
	t.Helper()
	written, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got V
	if err := json.Unmarshal(written, &got); err != nil {
		t.Fatalf("%s can't be read: %v", written, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s is read as something else (-want +got):\n%s", written, diff)
	}
}

// TestDocumentsRoundTrip checks that documents are read as they were written. Optional lists and maps are drawn either
// nil or not empty, as documents do not distinguish nil from empty.
func TestDocumentsRoundTrip(t *testing.T) {
	text := rapid.String()
	texts := filled(rapid.SliceOfN(text, 1, 3))
	table := filled(rapid.MapOfN(text, text, 1, 3))
	duration := rapid.Map(rapid.Int64(), func(n int64) Duration { return Duration(n) })
	moment := rapid.Map(rapid.Int64Range(0, 1<<37), func(n int64) time.Time { return time.Unix(n, n%1e9).UTC() })

	mount := rapid.Custom(func(t *rapid.T) Mount {
		return Mount{
			rapid.SampledFrom(MountTypes).Draw(t, "type"), text.Draw(t, "source"), text.Draw(t, "target"),
			rapid.Bool().Draw(t, "read only"), rapid.Int64().Draw(t, "size"),
			rapid.Ptr(rapid.Custom(func(t *rapid.T) VolumeDriver {
				return VolumeDriver{text.Draw(t, "driver"), table.Draw(t, "options")}
			}), true).Draw(t, "driver"),
		}
	})
	ulimit := rapid.Custom(func(t *rapid.T) Ulimit {
		return Ulimit{rapid.Int64().Draw(t, "soft"), rapid.Int64().Draw(t, "hard")}
	})
	healthCheck := rapid.Custom(func(t *rapid.T) HealthCheck {
		wait := rapid.Ptr(duration, true)
		return HealthCheck{
			rapid.SliceOf(text).Draw(t, "command"), wait.Draw(t, "interval"), wait.Draw(t, "timeout"),
			wait.Draw(t, "start period"),
			rapid.Int().Draw(t, "retries"),
		}
	})
	logging := rapid.Custom(func(t *rapid.T) Logging {
		return Logging{text.Draw(t, "driver"), table.Draw(t, "options")}
	})
	port := rapid.Custom(func(t *rapid.T) PublishedPort {
		return PublishedPort{rapid.Int().Draw(t, "target"), rapid.Int().Draw(t, "published"), text.Draw(t, "protocol")}
	})
	config := rapid.Custom(func(t *rapid.T) ConfigFile {
		return ConfigFile{text.Draw(t, "content"), text.Draw(t, "target"), FileMode(rapid.Uint32().Draw(t, "mode"))}
	})
	secret := rapid.Custom(func(t *rapid.T) SecretFile {
		return SecretFile{text.Draw(t, "version"), text.Draw(t, "target"), FileMode(rapid.Uint32().Draw(t, "mode"))}
	})
	container := rapid.Custom(func(t *rapid.T) Container {
		return Container{
			rapid.SampledFrom(PullPolicies).Draw(t, "pull policy"), text.Draw(t, "user"), rapid.Bool().Draw(t, "init"),
			text.Draw(t, "stop signal"), rapid.Int64().Draw(t, "shm"),
			tableOf(ulimit).Draw(t, "ulimits"), rapid.Ptr(healthCheck, true).Draw(t, "health check"),
			rapid.Ptr(logging, true).Draw(t, "logging"),
			tableOf(port).Draw(t, "ports"), tableOf(config).Draw(t, "configs"), tableOf(secret).Draw(t, "secrets"),
		}
	})
	resources := rapid.Custom(func(t *rapid.T) Resources {
		return Resources{rapid.Float64().Draw(t, "cpus"), rapid.Int64().Draw(t, "memory")}
	})
	gpus := rapid.Custom(func(t *rapid.T) GPURequest {
		return GPURequest{
			text.Draw(t, "pool"), rapid.Ptr(rapid.Int(), true).Draw(t, "count"), rapid.Int64().Draw(t, "memory"),
		}
	})
	template := rapid.Custom(func(t *rapid.T) Template {
		return Template{
			Image: text.Draw(t, "image"), Command: texts.Draw(t, "command"), Args: texts.Draw(t, "args"),
			Env:        table.Draw(t, "env"),
			WorkingDir: text.Draw(t, "dir"), Mounts: filled(rapid.SliceOfN(mount, 1, 2)).Draw(t, "mounts"),
			Container: rapid.Ptr(container, true).Draw(t, "container"),
		}
	})
	exitCodes := rapid.Custom(func(t *rapid.T) ExitCodeRule {
		return ExitCodeRule{rapid.SliceOfN(text, 0, 2).Draw(t, "codes")}
	})
	role := rapid.Custom(func(t *rapid.T) Role {
		return Role{
			Template: template.Draw(t, "template"),
			Replicas: rapid.Ptr(rapid.Int(), true).Draw(t, "replicas"),
			Port:     rapid.Ptr(rapid.Int(), true).Draw(t, "port"),
			Resources: ResourceRequirements{
				rapid.Float64().Draw(t, "cpus"), rapid.Int64().Draw(t, "memory"), resources.Draw(t, "limits"),
			},
			GPUs: rapid.Ptr(gpus, true).Draw(t, "gpus"),
			Placement: Placement{
				rapid.SampledFrom(Strategies).Draw(t, "strategy"), text.Draw(t, "label"), table.Draw(t, "labels"),
				texts.Draw(t, "hosts"),
			},
			Restart: Restart{
				rapid.SampledFrom(Conditions).Draw(t, "condition"), rapid.Ptr(rapid.Int(), true).Draw(t, "attempts"),
				rapid.Ptr(duration, true).Draw(t, "delay"),
			},
			ExitCodes:   rapid.Ptr(exitCodes, true).Draw(t, "exit codes"),
			GracePeriod: rapid.Ptr(duration, true).Draw(t, "grace"),
			Update: Update{
				rapid.Int().Draw(t, "parallelism"), rapid.Ptr(duration, true).Draw(t, "delay"),
				rapid.SampledFrom(OnFailures).Draw(t, "on failure"),
			},
		}
	})
	assignment := rapid.Custom(func(t *rapid.T) Assignment {
		return Assignment{text.Draw(t, "host"), rapid.Int().Draw(t, "port"), DeviceSet(text.Draw(t, "gpus"))}
	})
	network := rapid.Custom(func(t *rapid.T) Network {
		return Network{text.Draw(t, "subnet"), rapid.Bool().Draw(t, "encrypted"), rapid.Bool().Draw(t, "attachable")}
	})
	rapid.Check(t, func(t *rapid.T) {
		roundTrip(t, GroupDocument{
			Header: Header{Version: DocumentVersion}, Applying: rapid.Bool().Draw(t, "applying"),
			Spec: Group{
				Cluster: text.Draw(t, "cluster"), Name: text.Draw(t, "name"), Framework: text.Draw(t, "framework"),
				Template: template.Draw(t, "template"),
				Roles:    rapid.MapOfN(text, role, 0, 3).Draw(t, "roles"),
				Completion: Completion{
					rapid.SampledFrom(Whens).Draw(t, "when"), texts.Draw(t, "roles"),
					rapid.Ptr(duration, true).Draw(t, "deadline"), rapid.Ptr(rapid.Bool(), true).Draw(t, "stop rest"),
				},
				RestartScope: rapid.SampledFrom(RestartScopes).Draw(t, "scope"),
				WaitFor:      rapid.SampledFrom(WaitFors).Draw(t, "wait for"),
				Triggers:     table.Draw(t, "triggers"),
			},
			Counts:        rapid.MapOfN(text, rapid.Int(), 0, 3).Draw(t, "counts"),
			MinRun:        rapid.Int().Draw(t, "min run"),
			EarlierRuns:   rapid.Int().Draw(t, "earlier runs"),
			GroupRestarts: rapid.Int().Draw(t, "restarts"),
			StartedAt:     rapid.Ptr(moment, true).Draw(t, "started"),
			Assignments:   rapid.MapOfN(text, assignment, 0, 3).Draw(t, "assignments"),
			Before: &GroupDocument{
				Header: Header{Version: rapid.Int().Draw(t, "version before")}, Counts: map[string]int{},
				Assignments: map[string]Assignment{},
				Spec:        Group{Roles: map[string]Role{"worker": role.Draw(t, "role before")}},
			},
		})
		roundTrip(t, ClusterDocument{Header: Header{Version: DocumentVersion}, Spec: Cluster{
			Name: text.Draw(t, "cluster"), Engine: text.Draw(t, "engine"), Endpoint: text.Draw(t, "endpoint"),
			Network: rapid.Ptr(network, true).Draw(t, "network"),
			Hosts: map[string]Host{text.Draw(t, "host"): {
				Address: text.Draw(t, "address"), Labels: table.Draw(t, "labels"),
				Capacity:         Capacity{rapid.Float64().Draw(t, "cpus"), rapid.Int64().Draw(t, "memory")},
				Role:             rapid.SampledFrom(HostRoles).Draw(t, "role"),
				Availability:     rapid.SampledFrom(HostAvailabilities).Draw(t, "availability"),
				AdvertiseAddress: text.Draw(t, "advertise"), ID: text.Draw(t, "id"),
				Joined: rapid.Bool().Draw(t, "joined"),
			}},
		}})
	})
}

// TestRevisionIsNoContent checks that documents begin with their version and do not contain their revision, which is
// stored alongside them.
func TestRevisionIsNoContent(t *testing.T) {
	text := func(document any) string {
		t.Helper()
		written, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		return string(written)
	}
	first, second := Header{Version: DocumentVersion, Revision: 1}, Header{Version: DocumentVersion, Revision: 2}
	for _, c := range []struct{ a, b any }{
		{
			GroupDocument{Header: first, Before: &GroupDocument{Header: first}},
			GroupDocument{Header: second, Before: &GroupDocument{Header: second}},
		},
		{ClusterDocument{Header: first}, ClusterDocument{Header: second}},
		{GPUPoolDocument{Header: first}, GPUPoolDocument{Header: second}},
		{AutoscalingPolicyDocument{Header: first}, AutoscalingPolicyDocument{Header: second}},
	} {
		if a, b := text(c.a), text(c.b); a != b || !strings.HasPrefix(a, `{"version":1,`) {
			t.Errorf("%T is written as %s, and as %s", c.a, a, b)
		}
	}
}

// tableOf draws nil or a map of what g draws.
func tableOf[V any](g *rapid.Generator[V]) *rapid.Generator[map[string]V] {
	return filled(rapid.MapOfN(rapid.String(), g, 1, 2))
}

// filled draws nil or what g draws.
func filled[V any](g *rapid.Generator[V]) *rapid.Generator[V] {
	return rapid.OneOf(g, rapid.Just(*new(V)))
}
