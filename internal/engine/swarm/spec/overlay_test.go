package spec

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// theirs are settings of a service that others may make and no specification has.
var theirs = map[string]func(s *swarm.ServiceSpec){
	"service label": func(s *swarm.ServiceSpec) { s.Labels["team"] = "vision" },
	"container label": func(s *swarm.ServiceSpec) {
		s.TaskTemplate.ContainerSpec.Labels["team"] = "vision"
	},
	"network": func(s *swarm.ServiceSpec) {
		other := swarm.NetworkAttachmentConfig{Target: "metrics", Aliases: []string{"w"}}
		if !slices.ContainsFunc(s.TaskTemplate.Networks, func(n swarm.NetworkAttachmentConfig) bool {
			return n.Target == other.Target
		}) {
			s.TaskTemplate.Networks = append([]swarm.NetworkAttachmentConfig{other}, s.TaskTemplate.Networks...)
		}
	},
	"alias": func(s *swarm.ServiceSpec) {
		for i := range s.TaskTemplate.Networks {
			s.TaskTemplate.Networks[i].Aliases = []string{"w"}
		}
	},
	"update": func(s *swarm.ServiceSpec) {
		s.UpdateConfig.Order, s.UpdateConfig.Monitor = "start-first", time.Minute
	},
	"rollback": func(s *swarm.ServiceSpec) { s.RollbackConfig = &swarm.UpdateConfig{Parallelism: 4} },
	"force":    func(s *swarm.ServiceSpec) { s.TaskTemplate.ForceUpdate = 5 },
	"preferences": func(s *swarm.ServiceSpec) {
		for _, other := range []string{"engine.labels.disk", "node.labels.row"} {
			if !slices.Contains(descriptors(*s), other) {
				s.TaskTemplate.Placement.Preferences = append(s.TaskTemplate.Placement.Preferences,
					preferring(other)...)
			}
		}
	},
	"platforms": func(s *swarm.ServiceSpec) { s.TaskTemplate.Placement.Platforms = []swarm.Platform{{OS: "linux"}} },
	"window":    func(s *swarm.ServiceSpec) { s.TaskTemplate.RestartPolicy.Window = new(time.Minute) },
	"container": func(s *swarm.ServiceSpec) {
		c := s.TaskTemplate.ContainerSpec
		c.Groups, c.TTY, c.OpenStdin, c.ReadOnly = []string{"video"}, true, true, true
		c.Privileges = &swarm.Privileges{NoNewPrivileges: true}
		c.CapabilityAdd, c.CapabilityDrop, c.Sysctls = []string{
			"CAP_SYS_PTRACE",
		}, []string{"CAP_CHOWN"}, map[string]string{"net.core.somaxconn": "1024"}
		c.DNSConfig, c.Hosts, c.Isolation, c.OomScoreAdj = &swarm.DNSConfig{
			Options: []string{"ndots:0"},
		}, []string{"10.0.0.1 store"}, "default", 5
	},
	"processes": func(s *swarm.ServiceSpec) {
		if s.TaskTemplate.Resources == nil {
			s.TaskTemplate.Resources = &swarm.ResourceRequirements{}
		}
		if s.TaskTemplate.Resources.Limits == nil {
			s.TaskTemplate.Resources.Limits = &swarm.Limit{}
		}
		s.TaskTemplate.Resources.Limits.Pids = 100
	},
	"generic resources": func(s *swarm.ServiceSpec) {
		if s.TaskTemplate.Resources == nil {
			s.TaskTemplate.Resources = &swarm.ResourceRequirements{}
		}
		if s.TaskTemplate.Resources.Reservations == nil {
			s.TaskTemplate.Resources.Reservations = &swarm.Resources{}
		}
		s.TaskTemplate.Resources.Reservations.GenericResources = []swarm.GenericResource{
			{DiscreteResourceSpec: &swarm.DiscreteGenericResource{Kind: "ssd", Value: 1}},
		}
	},
	"credentials": func(s *swarm.ServiceSpec) {
		c := s.TaskTemplate.ContainerSpec
		runtime := &swarm.ConfigReference{
			ConfigID: "credentials", ConfigName: "credentials", Runtime: &swarm.ConfigReferenceRuntimeTarget{},
		}
		if len(runtimeConfigs(c.Configs)) == 0 {
			c.Configs = append([]*swarm.ConfigReference{runtime}, c.Configs...)
		}
	},
}

// theirDetails are settings that others may make on rendered elements, kept as long as the elements are.
var theirDetails = map[string]func(s *swarm.ServiceSpec){
	"propagation": func(s *swarm.ServiceSpec) {
		s.TaskTemplate.ContainerSpec.Mounts[0].BindOptions = &mount.BindOptions{Propagation: mount.PropagationRSlave}
	},
	"labels of a volume": func(s *swarm.ServiceSpec) {
		s.TaskTemplate.ContainerSpec.Mounts[1].VolumeOptions.Labels = map[string]string{"theirs": "yes"}
	},
	"how a member is updated": func(s *swarm.ServiceSpec) { s.UpdateConfig = &swarm.UpdateConfig{Parallelism: 3} },
	"mode of the tmpfs": func(s *swarm.ServiceSpec) {
		s.TaskTemplate.ContainerSpec.Mounts[2].TmpfsOptions.Mode = 0o700
	},
	"owner of a config": func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Configs[1].File.UID = "1000" },
	"owner of a secret": func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Secrets[0].File.GID = "1000" },
	"start interval": func(s *swarm.ServiceSpec) {
		s.TaskTemplate.ContainerSpec.Healthcheck.StartInterval = time.Second
	},
	"digest of the image": func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Image += "@sha256:4444" },
	"order of variables":  func(s *swarm.ServiceSpec) { slices.Reverse(s.TaskTemplate.ContainerSpec.Env) },
	"order of ulimits":    func(s *swarm.ServiceSpec) { slices.Reverse(s.TaskTemplate.ContainerSpec.Ulimits) },
	"spaces in constraints": func(s *swarm.ServiceSpec) {
		s.TaskTemplate.Placement.Constraints[0] = "node.id == node1"
	},
}

// TestOverlayKeeps: settings by others are neither drift nor lost.
func TestOverlayKeeps(t *testing.T) {
	all := maps.Clone(theirs)
	maps.Copy(all, theirDetails)
	for name, do := range all {
		t.Run(name, func(t *testing.T) {
			spec := rich()
			spec.Image = "trainer:2"
			service, k := rendered(t, spec)
			want := clone(t, service.Spec)
			do(&service.Spec)
			if Equal(service.Spec, want) {
				t.Fatal("nothing was set")
			}
			if live := Drift(service, k); live != nil {
				t.Errorf("it reads as changed: %s", cmp.Diff(spec.Normal(), *live))
			}
			if next := Overlay(service.Spec, want); !Equal(next, service.Spec) {
				t.Errorf("it is not kept:\n%s", cmp.Diff(service.Spec, next))
			}
		})
	}
}

// TestOverlayProperty merges one specification into the service of another that others changed too.
func TestOverlayProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawSpec(t), drawSpec(t)
		after.Cluster, after.Group, after.Role, after.Index, after.Name = before.Cluster, before.Group, before.Role,
			before.Index, before.Name
		service, _ := rendered(t, before)
		kept := rapid.SliceOfDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(theirs))), rapid.ID).Draw(t, "theirs")
		for _, name := range kept {
			theirs[name](&service.Spec)
		}
		wanted, k := rendered(t, after)
		live := clone(t, service.Spec)
		service.Spec = Overlay(service.Spec, wanted.Spec)
		if diff := cmp.Diff(read(wanted.Spec, k), read(service.Spec, k)); diff != "" {
			t.Errorf("it is not as wanted (-want +got):\n%s", diff)
		}
		if changed := Drift(service, k); changed != nil {
			t.Errorf("it reads as changed: %+v", changed)
		}
		for _, name := range kept {
			again := clone(t, service.Spec)
			theirs[name](&again)
			if !Equal(again, service.Spec) {
				t.Errorf("%s is lost:\n%s", name, cmp.Diff(again, service.Spec))
			}
		}
		if next := Overlay(service.Spec, wanted.Spec); !Equal(next, service.Spec) {
			t.Errorf("the second time it changes:\n%s", cmp.Diff(service.Spec, next))
		}
		untouched, _ := rendered(t, before)
		for _, name := range kept {
			theirs[name](&untouched.Spec)
		}
		if !Equal(live, untouched.Spec) {
			t.Error("the live service was changed in place")
		}
	})
}

func TestOverlayKeepsImageOfWhatGoesOn(t *testing.T) {
	spec := rich()
	in, _ := around(spec)
	live, err := Render(spec, in, 1)
	if err != nil {
		t.Fatal(err)
	}
	in.Images["trainer:1"] = References{Shared: "sha256:2222"} // the tag has moved
	for name, c := range map[string]struct {
		hash, image, want string
		run               int
	}{
		"the same":      {hash: spec.Hash, run: spec.Run, image: "trainer:1", want: "sha256:1111"},
		"a rerun":       {hash: spec.Hash, run: spec.Run + 1, image: "trainer:1", want: "sha256:2222"},
		"a change":      {hash: "another", run: spec.Run, image: "trainer:1", want: "sha256:2222"},
		"another image": {hash: spec.Hash, run: spec.Run, image: "trainer:3", want: "trainer:3"},
	} {
		t.Run(name, func(t *testing.T) {
			next := spec
			next.Hash, next.Run, next.Image = c.hash, c.run, c.image
			want, err := Render(next, in, 1)
			if err != nil {
				t.Fatal(err)
			}
			service := swarm.Service{Spec: Overlay(clone(t, live), want)}
			if got := service.Spec.TaskTemplate.ContainerSpec.Image; got != c.want {
				t.Errorf("the hosts are to run %q, want %q", got, c.want)
			}
			if got := read(service.Spec, Lookup{}).Image; got != c.image {
				t.Errorf("the image reads as %q, want %q", got, c.image)
			}
			if Drift(service, Lookup{}) != nil {
				t.Error("it reads as changed")
			}
		})
	}
}

// TestOverlayOther merges services into minimal ones, such as those of controllers.
func TestOverlayOther(t *testing.T) {
	want := swarm.ServiceSpec{
		Annotations:  swarm.Annotations{Name: "a", Labels: map[string]string{LabelKind: "controller"}},
		TaskTemplate: swarm.TaskSpec{ContainerSpec: &swarm.ContainerSpec{Image: "i", Env: []string{"A=1"}}},
	}
	for name, live := range map[string]swarm.ServiceSpec{
		"nothing": {Annotations: swarm.Annotations{Name: "a"}},
		"more": {
			Annotations: swarm.Annotations{Name: "a", Labels: map[string]string{LabelStop: "x"}},
			TaskTemplate: swarm.TaskSpec{
				ContainerSpec: &swarm.ContainerSpec{
					Image: "j", Env: []string{"B=1"}, Healthcheck: &container.HealthConfig{}, Init: new(true),
				},
				RestartPolicy: &swarm.RestartPolicy{}, LogDriver: &swarm.Driver{Name: "none"},
			},
		},
	} {
		got := Overlay(live, want)
		if diff := cmp.Diff(clone(t, want), clone(t, got)); diff != "" {
			t.Errorf("over %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOverlayNetwork merges a service into itself after the cluster's network was recreated.
func TestOverlayNetwork(t *testing.T) {
	spec := rich()
	service, _ := rendered(t, spec)
	theirs["network"](&service.Spec)
	in, _ := around(spec)
	in.Network = "network2"
	want, err := Render(spec, in, 1)
	if err != nil {
		t.Fatal(err)
	}
	service.Spec = Overlay(service.Spec, want)
	var targets []string
	for _, n := range service.Spec.TaskTemplate.Networks {
		targets = append(targets, n.Target)
	}
	if !slices.Equal(targets, []string{"metrics", "network2"}) || Drift(service, Lookup{}) != nil {
		t.Errorf("it is in the networks %q", targets)
	}
}
