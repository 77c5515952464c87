package provider

import (
	"context"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

type containerModel struct {
	PullPolicy  *string                    `tfsdk:"pull_policy"`
	Init        *bool                      `tfsdk:"init"`
	StopSignal  *string                    `tfsdk:"stop_signal"`
	ShmSizeMiB  *int64                     `tfsdk:"shm_size_mib"`
	Ulimits     map[string]ulimitModel     `tfsdk:"ulimits"`
	HealthCheck *healthCheckModel          `tfsdk:"health_check"`
	Logging     *loggingModel              `tfsdk:"logging"`
	Ports       map[string]portModel       `tfsdk:"ports"`
	Configs     map[string]configFileModel `tfsdk:"configs"`
	Secrets     map[string]secretFileModel `tfsdk:"secrets"`
}

type ulimitModel struct {
	Soft int64 `tfsdk:"soft"`
	Hard int64 `tfsdk:"hard"`
}

type healthCheckModel struct {
	Command     []string     `tfsdk:"command"`
	Interval    types.String `tfsdk:"interval"`
	Timeout     types.String `tfsdk:"timeout"`
	StartPeriod types.String `tfsdk:"start_period"`
	Retries     *int64       `tfsdk:"retries"`
}

type loggingModel struct {
	Driver  string            `tfsdk:"driver"`
	Options map[string]string `tfsdk:"options"`
}

type portModel struct {
	Target    int64   `tfsdk:"target"`
	Published int64   `tfsdk:"published"`
	Protocol  *string `tfsdk:"protocol"`
}

type configFileModel struct {
	Content string       `tfsdk:"content"`
	Target  string       `tfsdk:"target"`
	Mode    types.String `tfsdk:"mode"`
}

type secretFileModel struct {
	// Value is in the configuration only: in plans and states it is null.
	Value   types.String `tfsdk:"value"`
	Version string       `tfsdk:"version"`
	Target  *string      `tfsdk:"target"`
	Mode    types.String `tfsdk:"mode"`
}

// expand returns the container as it is specified, without the values of its secrets; nil where there is none.
func (m *containerModel) expand(diags *diag.Diagnostics) *domain.Container {
	if m == nil {
		return nil
	}
	c := &domain.Container{
		PullPolicy: domain.PullPolicy(value(m.PullPolicy)),
		Init:       value(m.Init),
		StopSignal: value(m.StopSignal),
		ShmSizeMiB: value(m.ShmSizeMiB),
		Ulimits:    convertMap(m.Ulimits, func(u ulimitModel) domain.Ulimit { return domain.Ulimit(u) }),
		Ports: convertMap(m.Ports, func(p portModel) domain.PublishedPort {
			return domain.PublishedPort{Target: int(p.Target), Published: int(p.Published), Protocol: value(p.Protocol)}
		}),
		Configs: convertMap(m.Configs, func(f configFileModel) domain.ConfigFile {
			return domain.ConfigFile{Content: f.Content, Target: f.Target, Mode: domain.FileMode(mode(f.Mode, diags))}
		}),
		Secrets: convertMap(m.Secrets, func(f secretFileModel) domain.SecretFile {
			return domain.SecretFile{Version: f.Version, Target: value(f.Target), Mode: domain.FileMode(mode(f.Mode, diags))}
		}),
	}
	if h := m.HealthCheck; h != nil {
		c.HealthCheck = &domain.HealthCheck{
			Command: h.Command, Interval: duration(h.Interval, diags), Timeout: duration(h.Timeout, diags), StartPeriod: duration(h.StartPeriod, diags),
			Retries: int(value(h.Retries)),
		}
	}
	if l := m.Logging; l != nil {
		c.Logging = &domain.Logging{Driver: l.Driver, Options: compactMap(l.Options)}
	}
	return c
}

// flattenContainer returns a container as it is stored, in the spelling of prior.
func flattenContainer(c *domain.Container, prior *containerModel) *containerModel {
	if c == nil {
		return nil
	}
	before := value(prior)
	m := &containerModel{
		PullPolicy: keepZero(string(c.PullPolicy), before.PullPolicy),
		Init:       keepZero(c.Init, before.Init),
		StopSignal: keepZero(c.StopSignal, before.StopSignal),
		ShmSizeMiB: keepZero(c.ShmSizeMiB, before.ShmSizeMiB),
		Ulimits:    flattenMap(c.Ulimits, before.Ulimits, func(u domain.Ulimit, _ ulimitModel) ulimitModel { return ulimitModel(u) }),
		Ports: flattenMap(c.Ports, before.Ports, func(p domain.PublishedPort, before portModel) portModel {
			return portModel{Target: int64(p.Target), Published: int64(p.Published), Protocol: keepZero(p.Protocol, before.Protocol)}
		}),
		Configs: flattenMap(c.Configs, before.Configs, func(f domain.ConfigFile, before configFileModel) configFileModel {
			return configFileModel{Content: f.Content, Target: f.Target, Mode: keepMode(uint32(f.Mode), before.Mode)}
		}),
		Secrets: flattenMap(c.Secrets, before.Secrets, func(f domain.SecretFile, before secretFileModel) secretFileModel {
			return secretFileModel{Version: f.Version, Target: keepZero(f.Target, before.Target), Mode: keepMode(uint32(f.Mode), before.Mode)}
		}),
	}
	if h := c.HealthCheck; h != nil {
		before := value(before.HealthCheck)
		m.HealthCheck = &healthCheckModel{
			Command:  append([]string{}, h.Command...),
			Interval: keepDuration(h.Interval, before.Interval), Timeout: keepDuration(h.Timeout, before.Timeout), StartPeriod: keepDuration(h.StartPeriod, before.StartPeriod),
			Retries: keepZero(int64(h.Retries), before.Retries),
		}
	}
	if l := c.Logging; l != nil {
		m.Logging = &loggingModel{Driver: l.Driver, Options: keepMap(l.Options, value(before.Logging).Options)}
	}
	return m
}

// secretValues returns the values of the secrets that the members of each role have. They are in the configuration alone.
func secretValues(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) domain.SecretValues {
	var group groupModel
	diags.Append(config.Get(ctx, &group)...)
	return group.secrets()
}

// secrets returns the values of the secrets of each role that has any: its own, or else the group's.
func (m groupModel) secrets() domain.SecretValues {
	values := domain.SecretValues{}
	for name, role := range m.Roles {
		container := role.Container
		if container == nil {
			container = m.Container
		}
		for secret, file := range value(container).Secrets {
			if values[name] == nil {
				values[name] = map[string][]byte{}
			}
			values[name][secret] = []byte(file.Value.ValueString())
		}
	}
	return values
}

// mode returns the permissions of a file as configured, 0 where they are null.
func mode(m types.String, diags *diag.Diagnostics) uint32 {
	if m.IsNull() {
		return 0
	}
	parsed, err := strconv.ParseUint(m.ValueString(), 8, 32)
	if err != nil {
		diags.AddError(invalidMode, err.Error())
		return 0
	}
	return uint32(parsed)
}

// convertMap returns a map with its values converted, nil where it is empty.
func convertMap[From, To any](m map[string]From, convert func(From) To) map[string]To {
	if len(m) == 0 {
		return nil
	}
	converted := make(map[string]To, len(m))
	for name, v := range m {
		converted[name] = convert(v)
	}
	return converted
}

// flattenMap returns a map with its values flattened, each in the spelling of prior.
func flattenMap[V, M any](m map[string]V, prior map[string]M, flatten func(current V, prior M) M) map[string]M {
	flat := make(map[string]M, len(m))
	for name, v := range m {
		flat[name] = flatten(v, prior[name])
	}
	return keepMap(flat, prior)
}
