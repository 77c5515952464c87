package reconcile_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestDifferences changes one setting of a live specification at a time.
func TestDifferences(t *testing.T) {
	for want, change := range map[string]func(live *domain.MemberSpec){
		"": func(live *domain.MemberSpec) {
			// Defaults written out, empty instead of nil, and the member's identity.
			live.Hash, live.Run, live.Index, live.Address = "other", 9, 9, "other"
			live.Files, live.Container.Configs = []domain.File{}, map[string]domain.ConfigFile{}
			slices.Reverse(live.Mounts)
			live.Mounts[0].Type, live.Placement.Strategy = domain.MountBind, domain.Spread
			live.Container.PullPolicy = domain.PullIfNotPresent
			live.Container.Ports = maps.Clone(live.Container.Ports)
			live.Container.Ports["web"] = domain.PublishedPort{Target: 80, Published: 8080, Protocol: "tcp"}
			live.Resources.CPUs += 1e-9
		},
		"image":       func(live *domain.MemberSpec) { live.Image = "trainer:1.3" },
		"command":     func(live *domain.MemberSpec) { live.Command = nil },
		"args":        func(live *domain.MemberSpec) { live.Args = append(live.Args, "more") },
		"working_dir": func(live *domain.MemberSpec) { live.WorkingDir = "/" },
		"mounts":      func(live *domain.MemberSpec) { live.Mounts[0].ReadOnly = !live.Mounts[0].ReadOnly },
		`env["TF_CONFIG"], env["TRAINYARD_GROUP"], env["ZUSE"]`: func(live *domain.MemberSpec) {
			live.Env["ZUSE"], live.Env["TF_CONFIG"] = "", "{}"
			delete(live.Env, "TRAINYARD_GROUP")
		},
		"resources.cpus":              func(live *domain.MemberSpec) { live.Resources.CPUs = 2 },
		"resources.memory_mib":        func(live *domain.MemberSpec) { live.Resources.MemoryMiB = 65 },
		"resources.limits.cpus":       func(live *domain.MemberSpec) { live.Resources.Limits.CPUs = 0 },
		"resources.limits.memory_mib": func(live *domain.MemberSpec) { live.Resources.Limits.MemoryMiB = 128 },
		"grace_period":                func(live *domain.MemberSpec) { live.GracePeriod = 1 },
		"restart":                     func(live *domain.MemberSpec) { live.Restart.MaxAttempts++ },
		"files":                       func(live *domain.MemberSpec) { live.Files = []domain.File{{Name: "a"}} },
		"placement":                   func(live *domain.MemberSpec) { live.Host = "elsewhere" },
		"placement.labels, placement.hosts": func(live *domain.MemberSpec) {
			live.Placement.Labels, live.Placement.Hosts = map[string]string{"a": "b"}, []string{"c"}
		},
		"placement.strategy":     func(live *domain.MemberSpec) { live.Placement.Strategy = domain.OnePerHost },
		"placement.spread_by":    func(live *domain.MemberSpec) { live.Placement.SpreadBy = "rack" },
		"container.pull_policy":  func(live *domain.MemberSpec) { live.Container.PullPolicy = domain.PullAlways },
		"container.user":         func(live *domain.MemberSpec) { live.Container.User = "root" },
		"container.init":         func(live *domain.MemberSpec) { live.Container.Init = true },
		"container.stop_signal":  func(live *domain.MemberSpec) { live.Container.StopSignal = "" },
		"container.shm_size_mib": func(live *domain.MemberSpec) { live.Container.ShmSizeMiB = 64 },
		"container.ulimits":      func(live *domain.MemberSpec) { live.Container.Ulimits = nil },
		"container.health_check": func(live *domain.MemberSpec) { live.Container.HealthCheck = nil },
		"container.logging": func(live *domain.MemberSpec) {
			live.Container.Logging = &domain.Logging{Driver: "none"}
		},
		"container.ports": func(live *domain.MemberSpec) { live.Container.Ports = map[string]domain.PublishedPort{} },
		"container.configs, container.secrets": func(live *domain.MemberSpec) {
			live.Container.Configs, live.Container.Secrets = map[string]domain.ConfigFile{"a": {}}, nil
		},
		"image, its network was removed": func(live *domain.MemberSpec) {
			live.Image, live.Deviations = "other", []string{"its network was removed"}
		},
	} {
		d := decide(t, lab(), full())
		should, live := specOf(t, d, "mnist-worker-0"), specOf(t, d, "mnist-worker-0")
		change(&live)
		if got := strings.Join(reconcile.Differences(should, live), ", "); got != want {
			t.Errorf("the differences are %q, not %q", got, want)
		}
	}
}

// TestDifferencesOfMembersWithoutAHost: where the engine has scheduled a member is no difference.
func TestDifferencesOfMembersWithoutAHost(t *testing.T) {
	want := domain.MemberSpec{Interchangeable: true, Scheduling: domain.SchedulingEngine, Shared: true, Image: "a"}
	live := want
	live.Host = "gpu1"
	if got := reconcile.Differences(want, live); got != nil {
		t.Errorf("the differences are %v", got)
	}
}

// TestEveryFieldDrifts changes one field of a template or its container at a time: each is reported and shown.
func TestEveryFieldDrifts(t *testing.T) {
	for prefix, c := range map[string]struct {
		fields   reflect.Type
		live     func(s *domain.MemberSpec) reflect.Value
		declared func(t domain.Template) reflect.Value
	}{
		"": {
			reflect.TypeFor[domain.Template](),
			func(s *domain.MemberSpec) reflect.Value { return reflect.ValueOf(s).Elem() },
			func(t domain.Template) reflect.Value { return reflect.ValueOf(t) },
		},
		"container.": {
			reflect.TypeFor[domain.Container](),
			func(s *domain.MemberSpec) reflect.Value { return reflect.ValueOf(&s.Container).Elem() },
			func(t domain.Template) reflect.Value { return reflect.ValueOf(*t.Container) },
		},
	} {
		for _, field := range reflect.VisibleFields(c.fields) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "env" || name == "container" {
				continue // covered by variable and by field
			}
			var value any
			read := drifted(t, group(1, 1), drift{member: "mnist-ps-0", live: func(live *domain.MemberSpec) {
				part := c.live(live).FieldByName(field.Name)
				fill(t, part)
				value = c.live(new(live.Normal())).FieldByName(field.Name).Interface()
			}})
			changes := reconcile.Diff(read.Decision, read.Observed)
			if len(changes) != 1 || changes[0].Reason != "changed outside Terraform: "+prefix+name {
				t.Errorf("%s%s is not covered: the changes are %+v", prefix, name, changes)
				continue
			}
			if diff := cmp.Diff(value,
				c.declared(read.Found().Spec.EffectiveTemplate("ps")).FieldByName(field.Name).Interface()); diff != "" {
				t.Errorf("%s%s as found (-live +found):\n%s", prefix, name, diff)
			}
		}
	}
}

// fill sets a value, and every field within it, to something.
func fill(t *testing.T, value reflect.Value) {
	t.Helper()
	switch value.Kind() {
	case reflect.String:
		value.SetString("x")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int64:
		value.SetInt(7)
	case reflect.Uint32:
		value.SetUint(7)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(t, value.Elem())
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(t, value.Index(0))
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(t, key)
		fill(t, element)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
	case reflect.Struct:
		for _, field := range value.Fields() {
			fill(t, field)
		}
	default:
		t.Fatalf("fill can't set a %s yet", value.Type())
	}
}
