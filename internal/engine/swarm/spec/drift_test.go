package spec

import (
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestDrift tampers with a service in one way after the other: exactly that is detected, and exactly that is corrected.
func TestDrift(t *testing.T) {
	for name, tampered := range tamperings {
		t.Run(name, func(t *testing.T) {
			service, k := rendered(t, rich())
			k.Configs["foreign"] = swarm.Config{ID: "foreign", Spec: swarm.ConfigSpec{Data: []byte("epochs: 4\n")}}
			want := clone(t, service.Spec)
			tampered.do(&service.Spec)
			live := Drift(service, k)
			if live == nil {
				t.Fatal("nothing is seen")
			}
			expected := clone(t, rich()).Normal()
			tampered.want(&expected)
			if diff := cmp.Diff(expected.Normal(), *live); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !BelongsTo(service, "lab") {
				t.Error("it is not known to be ours")
			}
			service.Spec = Overlay(service.Spec, want)
			if live := Drift(service, k); live != nil {
				t.Errorf("it is not mended: %s", cmp.Diff(rich().Normal(), *live))
			}
		})
	}
}

// TestPoolDrift tampers with what is specific to pooled services.
func TestPoolDrift(t *testing.T) {
	for name, tampered := range map[string]tampering{
		"label added": {
			func(s *swarm.ServiceSpec) {
				s.TaskTemplate.Placement.Constraints = append(s.TaskTemplate.Placement.Constraints,
					"node.labels.zone == b")
			},
			func(s *domain.MemberSpec) { s.Placement.Labels["zone"] = "b" },
		},
		"label changed": {
			func(s *swarm.ServiceSpec) { s.TaskTemplate.Placement.Constraints[0] = "node.labels.gpu==v100" },
			func(s *domain.MemberSpec) { s.Placement.Labels["gpu"] = "v100" },
		},
		"label removed": {
			func(s *swarm.ServiceSpec) {
				s.TaskTemplate.Placement.Constraints = s.TaskTemplate.Placement.Constraints[1:]
			},
			func(s *domain.MemberSpec) { s.Placement.Labels = nil },
		},
		"label ruled out": {
			func(s *swarm.ServiceSpec) {
				s.TaskTemplate.Placement.Constraints = append(s.TaskTemplate.Placement.Constraints,
					"node.labels.zone!=b")
			},
			deviates(`constraint "node.labels.zone!=b" was added`),
		},
		"other nodes": {
			func(s *swarm.ServiceSpec) {
				s.TaskTemplate.Placement.Constraints = s.TaskTemplate.Placement.Constraints[:1]
			},
			deviates(`constraint "node.id!=node2" was removed`, `constraint "node.id!=stranger" was removed`),
		},
		"more a node": {
			func(s *swarm.ServiceSpec) { s.TaskTemplate.Placement.MaxReplicas = 0 },
			func(s *domain.MemberSpec) { s.Placement.Strategy = domain.Spread },
		},
		"restart policy": {
			func(s *swarm.ServiceSpec) {
				s.TaskTemplate.RestartPolicy = &swarm.RestartPolicy{
					Condition: swarm.RestartPolicyConditionAny, Delay: new(time.Minute), MaxAttempts: new(uint64(2)),
				}
			},
			func(s *domain.MemberSpec) {
				s.Restart.Condition, s.Restart.Delay, s.Restart.MaxAttempts = domain.RestartAlways,
					domain.Duration(time.Minute), 2
			},
		},
		"update": {
			func(s *swarm.ServiceSpec) { s.UpdateConfig.Parallelism, s.UpdateConfig.Delay = 5, 0 },
			func(s *domain.MemberSpec) { s.Update.Parallelism, s.Update.Delay = 5, nil },
		},
		"update that goes on": {
			func(s *swarm.ServiceSpec) { s.UpdateConfig.FailureAction = swarm.UpdateFailureActionContinue },
			func(s *domain.MemberSpec) { s.Update.OnFailure = domain.UpdateContinue },
		},
		"update of the Swarm's own": {
			func(s *swarm.ServiceSpec) { s.UpdateConfig = nil },
			func(s *domain.MemberSpec) { s.Update.Parallelism, s.Update.Delay = 1, nil },
		},
		"whereabouts": {
			func(s *swarm.ServiceSpec) { replaceEnv(s, "TRAINYARD_HOST={{.Node.Hostname}}", "") },
			deviates("variable TRAINYARD_HOST is missing"),
		},
		"host name": {
			func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Hostname = "w-{{.Task.Slot}}" },
			deviates(`the host name is "w-{{.Task.Slot}}" instead of ""`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			service, k := rendered(t, richPool())
			want := clone(t, service.Spec)
			tampered.do(&service.Spec)
			live := Drift(service, k)
			if live == nil {
				t.Fatal("nothing is seen")
			}
			expected := clone(t, richPool()).Normal()
			tampered.want(&expected)
			if diff := cmp.Diff(expected.Normal(), Individual(*live, 3).Normal()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			service.Spec = Overlay(service.Spec, want)
			if live := Drift(service, k); live != nil {
				t.Errorf("it is not mended: %+v", live)
			}
		})
	}
}

// TestStoppedPoolIsNoDrift: a pool is stopped all at once, whatever its update settings, and keeps the tasks of all
// attempts; it has its own settings again when it starts again.
func TestStoppedPoolIsNoDrift(t *testing.T) {
	service, k := rendered(t, richPool())
	want := clone(t, service.Spec)
	service.Spec = Stopped(service.Spec, domain.StopCompleted)
	if config := service.Spec.UpdateConfig; config.Parallelism != 0 || config.Delay != 0 {
		t.Errorf("it is stopped by %+v", config)
	}
	policy := want.TaskTemplate.RestartPolicy
	if most := *service.Spec.TaskTemplate.RestartPolicy.MaxAttempts; most == 1 || most != *policy.MaxAttempts+1 {
		t.Errorf("instead of %d restarts, it has %d", *policy.MaxAttempts, most)
	}
	if live := Drift(service, k); live != nil {
		t.Errorf("it reads as changed: %s", cmp.Diff(richPool().Normal(), *live))
	}
	again := Overlay(service.Spec, want)
	if again.UpdateConfig.Parallelism != want.UpdateConfig.Parallelism ||
		again.UpdateConfig.Delay != want.UpdateConfig.Delay || again.Labels[LabelStop] != "" {
		t.Errorf("it starts again as %+v", again)
	}
	if diff := cmp.Diff(policy, again.TaskTemplate.RestartPolicy); diff != "" {
		t.Errorf("how it is restarted when it starts again (-want +got):\n%s", diff)
	}
	want.TaskTemplate.RestartPolicy = &swarm.RestartPolicy{MaxAttempts: new(uint64(0))}
	if most := *Stopped(want, domain.StopCompleted).TaskTemplate.RestartPolicy.MaxAttempts; most != 0 {
		t.Errorf("without a limit of restarts, it has one of %d", most)
	}
}

// TestNoDrift makes changes that are no drift: those in the course of a run, and those that only look different.
func TestNoDrift(t *testing.T) {
	for name, do := range map[string]func(s *swarm.ServiceSpec){
		"stopped": func(s *swarm.ServiceSpec) {
			s.Labels[LabelStop] = "completed"
			s.TaskTemplate.Placement.Constraints = append(s.TaskTemplate.Placement.Constraints, nowhere)
		},
		"restarted": func(s *swarm.ServiceSpec) { s.Labels[LabelRestarts], s.TaskTemplate.ForceUpdate = "2", 2 },
		"staged":    func(s *swarm.ServiceSpec) { s.Labels[LabelStaged] = "true"; SetReplicas(s, 0) },
		"digest added by docker service update": func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Image += "@sha256:4444"
		},
		"order of variables": func(s *swarm.ServiceSpec) { slices.Reverse(s.TaskTemplate.ContainerSpec.Env) },
		"order of mounts":    func(s *swarm.ServiceSpec) { slices.Reverse(s.TaskTemplate.ContainerSpec.Mounts) },
		"order of configs":   func(s *swarm.ServiceSpec) { slices.Reverse(s.TaskTemplate.ContainerSpec.Configs) },
		"spaces in constraints": func(s *swarm.ServiceSpec) {
			s.TaskTemplate.Placement.Constraints[0] = "node.id  == node1"
		},
		"the same other config": func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Configs[0].ConfigID = "again"
		},
		"secret's relative name": func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Secrets[0].File.Name = "token"
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := rich()
			spec.Image = "trainer:2" // has no other reference
			service, k := rendered(t, spec)
			do(&service.Spec)
			if live := Drift(service, k); live != nil {
				t.Errorf("it reads as changed: %s", cmp.Diff(spec.Normal(), *live))
			}
		})
	}
}
