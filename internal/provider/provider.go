// Package provider is the Terraform surface of Trainyard: the schemas of its resources, data sources and functions, and
// their conversion to the domain and back. What follows from a configuration is decided in package reconcile.
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/backtest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/cluster"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/files"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/functions"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/gpupool"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/gpus"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/history"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/image"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/jointoken"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/logs"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/sweep"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/utilisation"
)

// stateDirVariable is the environment variable for the default of state_dir.
const stateDirVariable = "TRAINYARD_STATE_DIR"

// New returns a constructor for providers of this version with these engines.
func New(version string, engines engine.Registry) func() provider.Provider {
	return func() provider.Provider {
		return &trainyardProvider{version: version, engines: engines}
	}
}

type trainyardProvider struct {
	version string
	engines engine.Registry
}

var (
	_ provider.ProviderWithFunctions          = &trainyardProvider{}
	_ provider.ProviderWithEphemeralResources = &trainyardProvider{}
)

type providerModel struct {
	StateDir   *string                         `tfsdk:"state_dir"`
	Binaries   map[string]string               `tfsdk:"agent_binaries"`
	SSH        *sshModel                       `tfsdk:"ssh"`
	Docker     *dockerModel                    `tfsdk:"docker"`
	Prometheus map[string]prometheusLoginModel `tfsdk:"prometheus"`
}

func (p *trainyardProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "trainyard"
	resp.Version = p.version
}

func (p *trainyardProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Trainyard declares training infrastructure: clusters of hosts, and groups of " +
			"parameter servers, " +
			"workers and other roles that train on them. It is for teams with one to a few hundred machines that do " +
			"not want to run Kubernetes.\n\n" +
			"The engine `process` runs members as processes on this machine, with nothing to install. " +
			"The engine `swarm` runs them as services of a Docker Swarm, which exists or which it forms. " +
			"The engine `systemd` runs them as systemd units and containers on bare hosts, over SSH alone.",
		Attributes: map[string]schema.Attribute{
			"state_dir": schema.StringAttribute{
				MarkdownDescription: "Folder, as an absolute path, in which the engine `process` keeps its clusters, " +
					"including their logs. " +
					"All users of a cluster must set the same folder. Defaults to the environment variable `" +
					stateDirVariable + "`, " +
					"then to `$XDG_STATE_HOME/trainyard`, then to `~/.local/state/trainyard`.",
				Optional: true,
			},
			"agent_binaries": schema.MapAttribute{
				MarkdownDescription: "Paths of the program `trainyard-agent`, built for Linux, by host architecture: " +
					"`amd64` or `arm64`. The engine `systemd` copies it to the hosts. " +
					"A release has these files beside the provider. Set those that a build from source lacks: it has " +
					"at most the one for its own machine.",
				ElementType: types.StringType,
				Optional:    true,
				Validators: []validator.Map{
					mapvalidator.NoNullValues(), mapvalidator.KeysAre(stringvalidator.OneOf("amd64", "arm64")),
					mapvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1)),
				},
			},
			"ssh":        sshAttribute(),
			"docker":     dockerAttribute(),
			"prometheus": prometheusAttribute(),
		},
	}
}

func (p *trainyardProvider) Configure(
	ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse,
) {
	for attribute, unknown := range map[string]string{
		"state_dir": "The state directory must be known before planning: use a literal or a variable, or set " +
			stateDirVariable + ".",
		"agent_binaries": "The programs for hosts must be known before planning: use literals or variables for " +
			"their paths.",
		"ssh":    unknownCredentials,
		"docker": unknownCredentials,
		"prometheus": "Credentials for Prometheus must be known before it is queried: use a literal, a variable or " +
			"an ephemeral resource.",
	} {
		if !resourcekit.KnownAttribute(req.Config.Raw, attribute) {
			resp.Diagnostics.AddAttributeError(path.Root(attribute), "Unknown provider configuration", unknown)
		}
	}
	var config providerModel
	if resp.Diagnostics.HasError() {
		return
	}
	if resp.Diagnostics.Append(req.Config.Get(ctx, &config)...); resp.Diagnostics.HasError() {
		return
	}
	s := resourcekit.NewSession(p.engines, engine.Settings{
		Planning: true,
		StateDir: resourcekit.Value(config.StateDir), AgentBinaries: config.Binaries, SSH: config.SSH.expand(),
		Docker: config.Docker.expand(),
	})
	s.Logins = resourcekit.ConvertMap(config.Prometheus, prometheusLoginModel.expand)
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData = s, s, s
}

// unknownCredentials says what to do about unknown credentials.
const unknownCredentials = "Credentials for the hosts must be known before planning, as every plan reads their live " +
	"state: use a literal, a variable or an ephemeral resource. " +
	"If they come from another resource, apply that one first (-target)."

func (p *trainyardProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return policy.NewResource(p.engines.Names()) },
		func() resource.Resource { return cluster.NewResource(p.engines.Names()) },
		func() resource.Resource { return files.NewResource(p.engines.Names()) },
		func() resource.Resource { return group.NewResource(p.engines.Names()) },
		func() resource.Resource { return gpupool.NewResource(p.engines.Names()) },
		func() resource.Resource { return image.NewResource(p.engines.Names()) },
		func() resource.Resource { return sweep.NewResource(p.engines.Names()) },
	}
}

func (p *trainyardProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		func() datasource.DataSource { return cluster.NewDataSource(p.engines.Names()) },
		func() datasource.DataSource { return group.NewDataSource(p.engines.Names()) },
		func() datasource.DataSource { return gpus.NewDataSource(p.engines.Names()) },
		func() datasource.DataSource { return logs.NewDataSource(p.engines.Names()) },
		func() datasource.DataSource { return backtest.NewDataSource() },
		func() datasource.DataSource { return history.NewDataSource(p.engines.Names()) },
		func() datasource.DataSource { return sweep.NewDataSource(p.engines.Names()) },
		func() datasource.DataSource { return utilisation.NewDataSource(p.engines.Names()) },
	}
}

func (p *trainyardProvider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{
		func() ephemeral.EphemeralResource { return jointoken.NewEphemeral(p.engines.Names()) },
	}
}

func (p *trainyardProvider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		func() function.Function { return functions.NewTFConfig() },
		func() function.Function { return functions.NewPSBandwidth() },
	}
}
