package sweep

import (
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/packed"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

const (
	// defaultTimeout limits each operation on a sweep, except waiting for its end.
	defaultTimeout = 5 * time.Minute
	// defaultCompletionTimeout limits a creation or update that waits until all runs have ended.
	defaultCompletionTimeout = 7 * 24 * time.Hour
)

// variablesByRun are environment variables by run key and name.
type variablesByRun = map[string]map[string]string

// Model is trainyard_sweep.
type Model struct {
	ID      types.String                 `tfsdk:"id"`
	Cluster resourcekit.ClusterReference `tfsdk:"cluster"`
	Name    types.String                 `tfsdk:"name"`
	group.TemplateModel
	Runs        packed.Value[variablesByRun]    `tfsdk:"runs"`
	Config      packed.Value[map[string]string] `tfsdk:"config"`
	MaxParallel *int64                          `tfsdk:"max_parallel"`
	Priority    *int64                          `tfsdk:"priority"`
	Resources   *group.ResourcesModel           `tfsdk:"resources"`
	GPUs        *group.RoleGPUsModel            `tfsdk:"gpus"`
	Placement   *group.PlacementModel           `tfsdk:"placement"`
	GracePeriod types.String                    `tfsdk:"grace_period"`
	ExitCodes   *group.ExitCodesModel           `tfsdk:"exit_codes"`
	Admission   *AdmissionModel                 `tfsdk:"admission"`
	Retry       *RetryModel                     `tfsdk:"retry"`
	OnFailure   *OnFailureModel                 `tfsdk:"on_failure"`
	OnFinish    *policy.HookModel               `tfsdk:"on_finish"`
	Results     *ResultsModel                   `tfsdk:"results"`
	Objective   *ObjectiveModel                 `tfsdk:"objective"`
	Progress    *ProgressModel                  `tfsdk:"progress"`
	WaitFor     types.String                    `tfsdk:"wait_for"`
	Rerun       types.String                    `tfsdk:"rerun"`
	Triggers    types.Map                       `tfsdk:"triggers"`
	Timeouts    timeouts.Value                  `tfsdk:"timeouts"`
}

// AdmissionModel is what is measured before a run starts.
type AdmissionModel struct {
	FreeGPUMemory  *bool         `tfsdk:"free_gpu_memory"`
	FreeMemory     *bool         `tfsdk:"free_memory"`
	ReservePercent types.Float64 `tfsdk:"reserve_percent"`
	Settle         types.String  `tfsdk:"settle"`
}

// RetryModel is how often a failed run is retried.
type RetryModel struct {
	MaxAttempts *int64       `tfsdk:"max_attempts"`
	OutOfMemory *int64       `tfsdk:"out_of_memory"`
	Patterns    []string     `tfsdk:"out_of_memory_patterns"`
	Delay       types.String `tfsdk:"delay"`
}

// OnFailureModel is what happens to a sweep with failed runs.
type OnFailureModel struct {
	After int64   `tfsdk:"after"`
	Then  *string `tfsdk:"then"`
}

// ResultsModel is where runs leave files.
type ResultsModel struct {
	Path      string  `tfsdk:"path"`
	OnDestroy *string `tfsdk:"on_destroy"`
	// CollectTo is a folder of the machine that Terraform runs on, so it is only in the state.
	CollectTo *string `tfsdk:"collect_to"`
}

// ObjectiveModel is the number by which runs are compared.
type ObjectiveModel struct {
	Pattern string  `tfsdk:"pattern"`
	Goal    *string `tfsdk:"goal"`
}

// InCluster returns the cluster that it belongs to.
func (m Model) InCluster() resourcekit.ClusterReference { return m.Cluster }

// Limits returns the configured timeouts.
func (m Model) Limits() timeouts.Value { return m.Timeouts }

// IdentityData returns the resource's identity.
func (m Model) IdentityData() any { return resourcekit.Identity{Cluster: m.Cluster.Name, Name: m.Name} }

// Title names the resource in errors.
func (m Model) Title() string { return fmt.Sprintf("sweep %q", m.Name.ValueString()) }

func (m Model) address() resourcekit.ItemAddress {
	return resourcekit.ItemAddress{Cluster: resourcekit.IDOf(m.Cluster.Key()), Name: m.Name.ValueString()}
}

// putTimeout limits a creation or update without a configured timeout.
func putTimeout(m Model) time.Duration {
	if m.WaitFor.ValueString() == string(domain.WaitEnded) {
		return defaultCompletionTimeout
	}
	return defaultTimeout
}

// expand returns the sweep that a configuration specifies, with defaults filled in so that it is stored as it is read
// back. Unknown triggers are left out, as only a change of them matters.
func (m Model) expand(diags *diag.Diagnostics) domain.Sweep {
	sweep := domain.Sweep{WaitFor: domain.WaitAccepted, Rerun: domain.RerunChanged}
	resourcekit.Expand(&sweep, m, diags)
	sweep.Template = sweep.Compact(domain.Template{})
	return sweep
}

// flatten returns a sweep as stored, in the spelling and with the timeouts of prior.
func flatten(spec domain.Sweep, prior Model) Model {
	m := resourcekit.Flatten(spec, prior)
	m.TemplateModel = m.Spelled(prior.TemplateModel, domain.Template{})
	m.ID = types.StringValue(domain.GroupID(spec.Cluster, spec.Name))
	return m
}
