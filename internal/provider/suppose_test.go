package provider

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/cluster"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/gpupool"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/packed"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy/policytest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/sweep"
)

// validate returns the diagnostics of a configuration, one line each.
func (tf terraform) validate(name string, config tftypes.Value) []string {
	tf.t.Helper()
	resp, err := tf.server.ValidateResourceConfig(tf.t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: name, Config: encode(tf.t, tf.schemas[name], config),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		tf.t.Fatal(err)
	}
	var messages []string
	for _, d := range resp.Diagnostics {
		// The framework itself reports missing required attributes within an unknown element.
		if d.Summary != "Missing Configuration for Required Attribute" {
			messages = append(messages, d.Summary+": "+d.Detail)
		}
	}
	return messages
}

// configurationOf returns a model as a configuration, without computed attributes.
func configurationOf(t *testing.T, s schema.Schema, model any) tftypes.Value {
	t.Helper()
	ctx := context.Background()
	state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(ctx), nil)}
	if diags := state.Set(ctx, model); diags.HasError() {
		t.Fatalf("set: %v", diags)
	}
	config, err := tftypes.Transform(state.Raw,
		func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
			if a, err := s.AttributeAtTerraformPath(ctx, at); err == nil && a.IsComputed() && !a.IsOptional() {
				return tftypes.NewValue(v.Type(), nil), nil
			}
			return v, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return unpacked(t, s, config)
}

// unpacked returns a resource as Terraform sees it.
func unpacked(t *testing.T, s schema.Schema, resource tftypes.Value) tftypes.Value {
	t.Helper()
	var attributes map[string]tftypes.Value
	if err := resource.As(&attributes); err != nil {
		t.Fatal(err)
	}
	attributes = maps.Clone(attributes)
	is := map[string]tftypes.Type{}
	for name, v := range attributes {
		if a, ok := s.Attributes[name].GetType().(packed.Attribute); ok {
			var err error
			if v, err = packed.Unpack(a, v); err != nil {
				t.Fatal(err)
			}
		}
		attributes[name], is[name] = v, v.Type()
	}
	return tftypes.NewValue(tftypes.Object{AttributeTypes: is}, attributes)
}

// validGroups are valid groups that involve as many rules about several attributes as possible.
func validGroups(t *testing.T) map[string]group.Model {
	text := types.StringValue
	groupOf := func(framework string, roles map[string]group.RoleModel) group.Model {
		return group.Model{
			Cluster: resourcekit.ClusterReference{
				Name: text("lab"), Engine: text("process"), Endpoint: types.StringNull(),
			}, Name: text("job"), Framework: text(framework), Roles: roles,
			Triggers: types.MapNull(types.StringType), Members: types.MapNull(types.StringType),
			Placements:  types.MapNull(types.StringType),
			ClusterSpec: types.MapNull(types.StringType),
			Timeouts:    providertest.NoTimeouts(group.Schema(t.Context(), nil)),
		}
	}
	full := groupOf("none", map[string]group.RoleModel{
		"a": {
			Replicas: new(int64(3)), Port: new(int64(9000)), GracePeriod: text("30s"),
			TemplateModel: group.TemplateModel{
				Command: []string{"/bin/a", `{{ address "b" 1 }}`},
				Env:     map[string]string{"GROUP": `{{ slice .Group 0 2 }}{{ slice .Cluster 0 2 }}`, "OWN": "x"},
				Container: &group.ContainerModel{
					Configs: map[string]group.ConfigFileModel{"c": {Content: "x", Target: new("/data")}},
				},
				Mounts: []group.MountModel{{Type: new("volume"), Source: new("scratch"), Target: "/scratch"}},
			},
			Resources: &group.ResourcesModel{
				CPUs: providertest.Inexact(1), MemoryMiB: new(int64(64)),
				Limits: &group.LimitsModel{CPUs: providertest.Inexact(2), MemoryMiB: new(int64(128))},
			},
			Restart:   &group.RestartModel{Condition: new("on_failure"), MaxAttempts: new(int64(2)), Delay: text("1s")},
			Update:    &group.UpdateModel{Parallelism: new(int64(1)), Delay: text("1s"), OnFailure: new("rollback")},
			ExitCodes: &group.ExitCodesModel{Final: []string{"3", "1-2"}},
		},
		"b": {
			Replicas: new(int64(2)), GPUs: &group.RoleGPUsModel{
				Pool: "p", Count: new(int64(1)),
			}, TemplateModel: group.TemplateModel{Image: new("trainer:1"), Args: []string{"run"}},
			Placement: &group.PlacementModel{
				Strategy: new("spread"), SpreadBy: new("rack"), Labels: map[string]string{"x": "y"},
				Hosts: []string{"gpu1"},
			},
		},
	})
	full.Mounts = []group.MountModel{
		{Type: new("bind"), Source: new("/data"), Target: "/data"},
		{Type: new("tmpfs"), Target: "/tmp", SizeMiB: new(int64(9))},
	}
	full.Args = []string{`{{ address "a" 2 }}`}
	full.WorkingDir = new("/work")
	full.Container = &group.ContainerModel{
		PullPolicy: new("always"), User: new("1000"), StopSignal: new("SIGINT"), ShmSizeMiB: new(int64(64)),
		Ulimits: map[string]group.UlimitModel{"nofile": {Soft: 10, Hard: 20}},
		HealthCheck: &group.HealthCheckModel{
			Command: []string{"true"}, Interval: text("1s"),
		}, Logging: &group.LoggingModel{Driver: "local"},
		Ports: map[string]group.PortModel{
			"a": {Target: 80, Published: 8080, Protocol: new("udp")},
			"b": {Target: 80, Published: 8080, Protocol: new("tcp")},
		},
		Configs: map[string]group.ConfigFileModel{"a": {Content: "x", Target: new("/etc/a"), Mode: text("0400")}},
		Secrets: map[string]group.SecretFileModel{
			"s": {Value: text("x"), Version: "1", Target: new("/etc/s")},
			"r": {Value: text("x"), Version: "1", Target: new("/run/secrets/s")},
		},
	}
	full.Completion, full.WaitFor = &group.CompletionModel{
		When: new("all"), Roles: []string{"b"}, Deadline: text("1h"),
	}, text("completed")

	served := groupOf("tensorflow_v1", map[string]group.RoleModel{
		"ps":     {Replicas: new(int64(1)), TemplateModel: group.TemplateModel{Command: []string{"x"}}},
		"worker": {Replicas: new(int64(2)), TemplateModel: group.TemplateModel{Image: new("trainer:1")}},
	})
	served.WaitFor = text("completed")
	launched := groupOf("mpi",
		map[string]group.RoleModel{"launcher": {Replicas: new(int64(1))}, "worker": {Replicas: new(int64(4))}})
	launched.Command, launched.Completion = []string{
		"train",
	}, &group.CompletionModel{When: new("chief"), Roles: []string{"launcher"}}
	farm := groupOf("spark", map[string]group.RoleModel{"master": {}, "worker": {
		Replicas: new(int64(2)), TemplateModel: group.TemplateModel{Args: []string{`{{ address "master" 0 }}`}},
	}})
	farm.Image, farm.WaitFor = new("spark:4"), text("completed")
	farm.Completion = &group.CompletionModel{When: new("all"), Roles: []string{"worker"}}
	overridden := groupOf("none",
		map[string]group.RoleModel{"a": {Replicas: new(int64(1)), TemplateModel: group.TemplateModel{
			Command: []string{"/bin/a"}, Env: map[string]string{"X": "own"}, Args: []string{"own"},
		}}})
	overridden.Command, overridden.Args, overridden.Env = []string{
		"",
	}, []string{`{{ address "z" 0 }}`}, map[string]string{"X": `{{ address "z" 0 }}`}
	chief := groupOf("none",
		map[string]group.RoleModel{"a": {Replicas: new(int64(1))}, "chief": {Replicas: new(int64(1))}})
	chief.Command, chief.Completion, chief.WaitFor = []string{
		"x",
	}, &group.CompletionModel{When: new("chief")}, text("completed")
	return map[string]group.Model{
		"full": full, "served": served, "launched": launched, "farm": farm, "overridden": overridden, "chief": chief,
	}
}

// validPolicies are valid policies that involve as many rules about several attributes as possible.
func validPolicies() map[string]policy.Model {
	text := types.StringValue
	whole := policytest.Small()
	whole.Metrics["total"] = policy.MeasuredMetricModel{
		ScalingMetricModel: policy.ScalingMetricModel{Algorithm: &policy.ScalingAlgorithmModel{
			Target: &policy.TargetModel{Value: providertest.Inexact(60), Per: new("total")},
		}},
		Source: &policy.ScalingSourceModel{Agent: &policy.AgentSourceModel{Measure: "cpus", Of: new("total")}},
	}
	asleep := policytest.Small()
	asleep.Min, asleep.Initial = new(int64(0)), new(int64(2))
	asleep.Metrics = map[string]policy.MeasuredMetricModel{
		"edge": {
			ScalingMetricModel: policy.ScalingMetricModel{
				Algorithm: &policy.ScalingAlgorithmModel{Threshold: &policy.ThresholdModel{
					Lower: providertest.Inexact(1), Upper: providertest.Inexact(2), StepOut: new(int64(2)),
					StepInPercent: providertest.Inexact(10),
				}},
				OnMissing: new("value"), MissingValue: providertest.Inexact(1),
				Forecast: &policy.ForecastModel{Lead: text("1m"), Season: text("24h")},
			},
			Source: &policy.ScalingSourceModel{
				Prometheus: &policy.PrometheusSourceModel{URL: "http://prometheus:9090", Query: "up"},
			}, Window: text("1m"), Aggregation: new("p95"),
		},
	}
	asleep.Guards = &policy.ScalingGuardsModel{Busy: &policy.BusyGuardModel{CPUPercent: providertest.Inexact(1)}}
	asleep.Hooks = &policy.ScalingHooksModel{
		BeforeRemoval: &policy.HookModel{URL: new("http://drain"), Timeout: text("2s")},
	}
	daily := policytest.Small()
	daily.Metrics, daily.Min = nil, new(int64(2))
	daily.Schedules = map[string]policy.ScalingScheduleModel{
		"day": {Start: "0 8 * * *", End: "0 18 * * *", TimeZone: new("Europe/Warsaw"), Count: 4},
	}
	return map[string]policy.Model{
		"full": policytest.Full(), "small": policytest.Small(), "whole": whole, "asleep": asleep, "daily": daily,
	}
}

// validPools are valid GPU pools.
func validPools(t *testing.T) map[string]gpupool.Model {
	pool := func(byHost map[string][]string) gpupool.Model {
		return gpupool.Model{
			Cluster: resourcekit.ClusterReference{
				Name: types.StringValue("lab"), Engine: types.StringValue("swarm"), Endpoint: types.StringNull(),
			}, Name: types.StringValue("p"), Devices: providertest.UUIDLists(byHost),
			DeviceSlots: types.MapNull(types.Int64Type), Unhealthy: types.MapNull(types.StringType),
			Timeouts: providertest.NoTimeouts(gpupool.Schema(t.Context(), nil)),
		}
	}
	named := pool(map[string][]string{
		"gpu1": {"GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91", "GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a92"},
	})
	selected := pool(nil)
	selected.Select = &gpupool.SelectorModel{Model: new("Tesla*"), MaxPerHost: new(int64(2))}
	selected.Sharing, selected.MemoryMiBPerSlot, selected.ReservePercent = types.StringValue("slots"), new(int64(1199)),
		providertest.Inexact(3)
	return map[string]gpupool.Model{"named": named, "selected": selected}
}

// validSweeps are valid sweeps that involve as many rules about several attributes as possible.
func validSweeps(t *testing.T) map[string]sweep.Model {
	text := types.StringValue
	small := sweep.Model{
		Cluster: resourcekit.ClusterReference{
			Name: text("lab"), Engine: text("process"), Endpoint: types.StringNull(),
		}, Name: text("lr"),
		TemplateModel: group.TemplateModel{
			Command: []string{"train", "--lr", "{{ .Env.LR }}"},
		}, Runs: packed.Of(map[string]map[string]string{"a": {"LR": "0.1"}, "b": {"LR": "{{ .Role }}"}}),
		Triggers: types.MapNull(types.StringType), Timeouts: providertest.NoTimeouts(sweep.Schema(t.Context(), nil)),
	}
	full := small
	full.Image, full.Args, full.Env, full.WorkingDir = new("trainer:1"), []string{
		"{{ .Name }}",
	}, map[string]string{"SEED": "{{ .Env.LR }}"}, new("/work")
	full.Container = &group.ContainerModel{
		User: new("1000"), Ports: map[string]group.PortModel{"a": {Target: 80, Published: 8080}},
	}
	full.MaxParallel, full.Priority = new(int64(8)), new(int64(-1))
	full.Resources = &group.ResourcesModel{
		CPUs: providertest.Inexact(1), MemoryMiB: new(int64(64)),
		Limits: &group.LimitsModel{CPUs: providertest.Inexact(2)},
	}
	full.GPUs = &group.RoleGPUsModel{Pool: "p", MemoryMiB: new(int64(1199))}
	full.Placement = &group.PlacementModel{
		Strategy: new("pack"), SpreadBy: new("rack"), Labels: map[string]string{"x": "y"},
	}
	full.GracePeriod, full.ExitCodes = text("30s"), &group.ExitCodesModel{Final: []string{"3", "1-2"}}
	full.Admission = &sweep.AdmissionModel{
		FreeGPUMemory: new(true), FreeMemory: new(true), ReservePercent: providertest.Inexact(3), Settle: text("20s"),
	}
	full.Retry = &sweep.RetryModel{
		MaxAttempts: new(int64(3)), OutOfMemory: new(int64(5)), Patterns: []string{"no memory"}, Delay: text("10s"),
	}
	full.OnFailure, full.Objective = &sweep.OnFailureModel{
		After: 5, Then: new("drain"),
	}, &sweep.ObjectiveModel{Pattern: "loss=([0-9.]+)", Goal: new("minimise")}
	full.WaitFor, full.Rerun, full.Triggers = text("completed"), text("all"),
		resourcekit.StringMap(map[string]string{"data": "v2"})
	return map[string]sweep.Model{"small": small, "full": full}
}

// validConfigurations are those of all resources with rules about several attributes.
func validConfigurations(t *testing.T) map[string]map[string]tftypes.Value {
	t.Helper()
	engines := []string{"process", "swarm"}
	all := map[string]map[string]tftypes.Value{
		"trainyard_group": {}, "trainyard_autoscaling_policy": {}, "trainyard_gpu_pool": {}, "trainyard_cluster": {},
		"trainyard_sweep": {},
	}
	for name, model := range validGroups(t) {
		all["trainyard_group"][name] = configurationOf(t, group.Schema(t.Context(), engines), model)
	}
	for name, model := range validPolicies() {
		all["trainyard_autoscaling_policy"][name] = configurationOf(t, policy.Schema(t.Context(), engines), model)
	}
	for name, pool := range validPools(t) {
		all["trainyard_gpu_pool"][name] = configurationOf(t, gpupool.Schema(t.Context(), engines), pool)
	}
	for name, model := range validSweeps(t) {
		all["trainyard_sweep"][name] = configurationOf(t, sweep.Schema(t.Context(), engines), model)
	}
	all["trainyard_cluster"]["full"] = configurationOf(t, cluster.Schema(t.Context(), engines), cluster.Model{
		Name: types.StringValue("lab"), Engine: types.StringValue("swarm"),
		Timeouts: providertest.NoTimeouts(cluster.Schema(t.Context(), nil)),
		Hosts: map[string]cluster.HostModel{
			"gpu1": {
				Address: new("ssh://gpu1"), Role: new("manager"), Availability: new("active"),
				Socket:   new("/run/docker.sock"),
				Capacity: &cluster.CapacityModel{CPUs: providertest.Inexact(2), MemoryMiB: new(int64(64))},
			},
			"gpu2": {},
		},
		Network: &cluster.NetworkModel{Subnet: types.StringValue("10.0.0.0/20")},
	})
	return all
}

// places returns the paths of all values in a configuration that are not null.
func places(t *testing.T, config tftypes.Value) []string {
	t.Helper()
	var found []string
	err := tftypes.Walk(config, func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		if len(at.Steps()) > 0 && !v.IsNull() {
			found = append(found, at.String())
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// without returns a configuration with these values unknown.
func without(t providertest.Require, config tftypes.Value, unknown ...string) tftypes.Value {
	open, err := tftypes.Transform(config, func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if slices.Contains(unknown, at.String()) {
			return tftypes.NewValue(v.Type(), tftypes.UnknownValue), nil
		}
		return v, nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return open
}

// Unknown values are no problem: a valid configuration stays valid with any of its values unknown,
// alone or several at once.
func TestUnknownValuesAreNoProblem(t *testing.T) {
	tf := newTerraform(t, &providertest.Stub{})
	for resource, configurations := range validConfigurations(t) {
		for name, config := range configurations {
			t.Run(resource+"/"+name, func(t *testing.T) {
				if messages := tf.validate(resource, config); len(messages) > 0 {
					t.Fatalf("the configuration is not valid:\n%s", strings.Join(messages, "\n"))
				}
				all := places(t, config)
				for _, at := range all {
					if messages := tf.validate(resource, without(t, config, at)); len(messages) > 0 {
						t.Errorf("without %s:\n%s", at, strings.Join(messages, "\n"))
					}
				}
				if t.Failed() {
					return
				}
				rapid.Check(t, func(t *rapid.T) {
					unknown := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 2, min(6, len(all)),
						rapid.ID[string]).Draw(t, "unknown")
					if messages := tf.validate(resource, without(t, config, unknown...)); len(messages) > 0 {
						t.Fatalf("without %s:\n%s", strings.Join(unknown, ", "), strings.Join(messages, "\n"))
					}
				})
			})
		}
	}
}

// Known values are checked, whatever else is unknown.
func TestKnownValuesAreChecked(t *testing.T) {
	tf := newTerraform(t, &providertest.Stub{})
	groups, policies, pools := validGroups(t), validPolicies(), validPools(t)
	engines := []string{"process", "swarm"}
	groupWith := func(change func(*group.Model)) tftypes.Value {
		m := groups["launched"]
		m.Image = new("trainer:1")
		change(&m)
		return configurationOf(t, group.Schema(t.Context(), engines), m)
	}
	role := func(r group.RoleModel) tftypes.Value {
		return groupWith(func(m *group.Model) {
			m.Roles = map[string]group.RoleModel{"launcher": {Replicas: new(int64(1))}, "worker": r}
		})
	}
	image := `AttributeName("image")`
	for name, test := range map[string]struct {
		resource string
		config   tftypes.Value
		unknown  []string
		says     string
	}{
		"wait_for": {
			"trainyard_group", groupWith(func(m *group.Model) { m.WaitFor = types.StringValue("ready") }),
			[]string{image}, `unknown phase to wait for "ready"`,
		},
		"name": {
			"trainyard_group", groupWith(func(m *group.Model) { m.Name = types.StringValue("A_b") }), []string{image},
			`"A_b" is not a DNS label`,
		},
		"roles": {
			"trainyard_group", groupWith(func(m *group.Model) {
				m.Roles = map[string]group.RoleModel{
					"launcher": {TemplateModel: group.TemplateModel{Image: new("x")}}, "other": {},
				}
			}),
			[]string{`AttributeName("roles").ElementKeyString("launcher").AttributeName("image")`},
			`has no role "other"`,
		},
		"a role that is missing": {
			"trainyard_group", groupWith(func(m *group.Model) {
				m.Roles = map[string]group.RoleModel{
					"launcher": {Replicas: new(int64(0)), TemplateModel: group.TemplateModel{Image: new("x")}},
				}
			}),
			[]string{`AttributeName("roles").ElementKeyString("launcher").AttributeName("image")`},
			"a group needs at least one role",
		},
		"a template": {
			"trainyard_group",
			role(group.RoleModel{TemplateModel: group.TemplateModel{Args: []string{`{{ address "z" 0 }}`}}}),
			[]string{image}, `there is no role "z"`,
		},
		"a limit": {"trainyard_group", role(group.RoleModel{Resources: &group.ResourcesModel{
			CPUs: providertest.Inexact(2), Limits: &group.LimitsModel{CPUs: providertest.Inexact(1)},
		}}), []string{image, `AttributeName("cluster")`}, "is limited to"},
		"a duration beside one that is malformed": {
			"trainyard_group", role(group.RoleModel{
				GracePeriod: types.StringValue("soon"), Restart: &group.RestartModel{Delay: types.StringValue("-1s")},
			}), nil, "got -1s",
		},
		"a policy": {
			"trainyard_autoscaling_policy",
			configurationOf(t, policy.Schema(t.Context(), engines), func() policy.Model {
				m := policies["asleep"]
				m.Initial = new(int64(20))
				return m
			}()), []string{`AttributeName("metrics")`, `AttributeName("group")`, `AttributeName("cluster")`}, "got 20",
		},
		"a pool": {
			"trainyard_gpu_pool", configurationOf(t, gpupool.Schema(t.Context(), engines), func() gpupool.Model {
				m := pools["selected"]
				m.Strategy = types.StringValue("random")
				return m
			}()), []string{`AttributeName("select")`, `AttributeName("cluster")`}, `unknown strategy "random"`,
		},
		"a cluster": {
			"trainyard_cluster", configurationOf(t, cluster.Schema(t.Context(), engines), cluster.Model{
				Name: types.StringValue("lab"), Timeouts: providertest.NoTimeouts(cluster.Schema(t.Context(), nil)),
				Hosts: map[string]cluster.HostModel{"A_b": {Address: new("x")}},
			}), []string{`AttributeName("hosts").ElementKeyString("A_b").AttributeName("address")`},
			`"A_b" is not a valid host name`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			message := strings.Join(tf.validate(test.resource, without(t, test.config, test.unknown...)), "\n")
			if !strings.Contains(message, test.says) {
				t.Errorf("without %v it says %q, not %q", test.unknown, message, test.says)
			}
		})
	}
}
