package provider

import (
	"context"

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
