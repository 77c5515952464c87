package group

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// ContainerModel is the settings of members that are containers.
type ContainerModel struct {
	PullPolicy  *string                    `tfsdk:"pull_policy"`
	User        *string                    `tfsdk:"user"`
	Init        *bool                      `tfsdk:"init"`
	StopSignal  *string                    `tfsdk:"stop_signal"`
	ShmSizeMiB  *int64                     `tfsdk:"shm_size_mib"`
	Ulimits     map[string]UlimitModel     `tfsdk:"ulimits"`
	HealthCheck *HealthCheckModel          `tfsdk:"health_check"`
	Logging     *LoggingModel              `tfsdk:"logging"`
	Ports       map[string]PortModel       `tfsdk:"ports"`
	Configs     map[string]ConfigFileModel `tfsdk:"configs"`
	Secrets     map[string]SecretFileModel `tfsdk:"secrets"`
}

// UlimitModel is a resource limit of processes.
type UlimitModel struct {
	Soft int64 `tfsdk:"soft"`
	Hard int64 `tfsdk:"hard"`
}

// HealthCheckModel is how a container's health is checked.
type HealthCheckModel struct {
	Command     []string     `tfsdk:"command"`
	Interval    types.String `tfsdk:"interval"`
	Timeout     types.String `tfsdk:"timeout"`
	StartPeriod types.String `tfsdk:"start_period"`
	Retries     *int64       `tfsdk:"retries"`
}

// LoggingModel is where a container's output goes.
type LoggingModel struct {
	Driver  string            `tfsdk:"driver"`
	Options map[string]string `tfsdk:"options"`
}

// PortModel is a port that a container publishes.
type PortModel struct {
	Target    int64   `tfsdk:"target"`
	Published int64   `tfsdk:"published"`
	Protocol  *string `tfsdk:"protocol"`
}

// ConfigFileModel is a configuration file.
type ConfigFileModel struct {
	Content string       `tfsdk:"content"`
	Target  *string      `tfsdk:"target"`
	Mode    types.String `tfsdk:"mode"`
}

// SecretFileModel is a file with a secret.
type SecretFileModel struct {
	// Value is only in the configuration: it is null in plans and states.
	Value   types.String `tfsdk:"value"`
	Version string       `tfsdk:"version"`
	Target  *string      `tfsdk:"target"`
	Mode    types.String `tfsdk:"mode"`
}

// secretValues returns the secret values of each role's members, which are only in the configuration.
func secretValues(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) domain.SecretValues {
	var group Model
	diags.Append(config.Get(ctx, &group)...)
	return group.secrets()
}

// secrets returns the secret values of each role with any: its own, or else the group's.
func (m Model) secrets() domain.SecretValues {
	values := domain.SecretValues{}
	for name, role := range m.Roles {
		container := role.Container
		if container == nil {
			container = m.Container
		}
		for secret, file := range resourcekit.Value(container).Secrets {
			if values[name] == nil {
				values[name] = map[string][]byte{}
			}
			values[name][secret] = []byte(file.Value.ValueString())
		}
	}
	return values
}
