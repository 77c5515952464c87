package sweep

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// sweepDataSource is trainyard_sweep.
type sweepDataSource struct{ resourcekit.DataSource }

var _ datasource.DataSourceWithConfigure = &sweepDataSource{}

type dataModel struct {
	ID       types.String            `tfsdk:"id"`
	Cluster  resourcekit.ClusterRead `tfsdk:"cluster"`
	Name     types.String            `tfsdk:"name"`
	Total    types.Int64             `tfsdk:"total"`
	Counts   map[string]int64        `tfsdk:"counts"`
	Ended    types.Bool              `tfsdk:"ended"`
	TimeLeft *string                 `tfsdk:"time_left"`
	Best     *string                 `tfsdk:"best"`
	Ranking  []string                `tfsdk:"ranking"`
	Runs     map[string]runDataModel `tfsdk:"runs"`
	// Parallelism is null for a sweep without progress.
	Parallelism *parallelismModel `tfsdk:"parallelism"`
}

type runDataModel struct {
	State            string            `tfsdk:"state"`
	Reason           *string           `tfsdk:"reason"`
	Member           string            `tfsdk:"member"`
	Attempts         int64             `tfsdk:"attempts"`
	Failures         int64             `tfsdk:"failures"`
	OutOfMemory      int64             `tfsdk:"out_of_memory"`
	Host             *string           `tfsdk:"host"`
	GPUs             []string          `tfsdk:"gpus"`
	ExitCode         *int64            `tfsdk:"exit_code"`
	StartedAt        timetypes.RFC3339 `tfsdk:"started_at"`
	FinishedAt       timetypes.RFC3339 `tfsdk:"finished_at"`
	PeakMemoryMiB    *int64            `tfsdk:"peak_memory_mib"`
	PeakGPUMemoryMiB *int64            `tfsdk:"peak_gpu_memory_mib"`
	Value            types.Float64     `tfsdk:"value"`
	Results          *string           `tfsdk:"results"`
}

func (d *sweepDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The current state of a sweep: its runs by state, each run, and the best of them. " +
			"Everything that changes by itself is here rather than in the resource.",
		Attributes: map[string]schema.Attribute{
			"id":      resourcekit.ComputedText("`<cluster>/<sweep>`."),
			"cluster": resourcekit.ClusterReadAttribute(d.Engines),
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the sweep.",
				Required:            true,
			},
			"total": computedNumber("Number of runs."),
			"counts": schema.MapAttribute{
				MarkdownDescription: "Number of runs in each state: " + stateNames +
					". A run that is `out_of_memory` ran out of GPU memory too often to be tried again.",
				ElementType: types.Int64Type,
				Computed:    true,
			},
			"ended": schema.BoolAttribute{
				MarkdownDescription: "Whether all runs have ended.",
				Computed:            true,
			},
			"time_left": resourcekit.ComputedText("Estimated time until all runs have ended, such as `1h30m0s`, " +
				"based on how long successful runs took and how many run concurrently now; null if no estimate is " +
				"possible yet."),
			"best": resourcekit.ComputedText(
				"Key of the run with the best value, the first of `ranking`; null if there is none.",
			),
			"ranking": schema.ListAttribute{
				MarkdownDescription: "Keys of the runs that succeeded and have a value, best first according to " +
					"`objective.goal`.",
				ElementType: types.StringType,
				Computed:    true,
			},
			"parallelism": parallelismAttribute(),
			"runs": schema.MapNestedAttribute{
				MarkdownDescription: "The runs by key. Attributes of an attempt are those of the latest one.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: runDataAttributes()},
			},
		},
	}
}

// stateNames lists the states for descriptions.
var stateNames = "`" + strings.Join(resourcekit.NamesOf(domain.RunStates), "`, `") + "`"

func runDataAttributes() map[string]schema.Attribute {
	moment := func(description string) schema.Attribute {
		return schema.StringAttribute{
			MarkdownDescription: description + " A time in RFC 3339, UTC.", CustomType: timetypes.RFC3339Type{},
			Computed: true,
		}
	}
	return map[string]schema.Attribute{
		"state": resourcekit.ComputedText("State of the run: " + stateNames + "."),
		"reason": resourcekit.ComputedText(
			"Why the run is in its state, such as what it waits for or why it failed; null if there is no " +
				"reason to give.",
		),
		"member":        resourcekit.ComputedText("Name of the run's member, for the data source `trainyard_logs`."),
		"attempts":      computedNumber("Number of attempts started."),
		"failures":      computedNumber("Number of failed attempts."),
		"out_of_memory": computedNumber("Number of attempts that ran out of GPU memory."),
		"host":          resourcekit.ComputedText("Name of the attempt's host; null if there was no attempt."),
		"gpus": schema.ListAttribute{
			MarkdownDescription: "UUIDs of the attempt's GPUs; empty if it had none.",
			ElementType:         types.StringType,
			Computed:            true,
		},
		"exit_code": computedNumber(
			"Exit code of the attempt, 128 + the signal number if a signal killed it; null if it has not ended.",
		),
		"started_at":  moment("Start of the attempt; null if there was no attempt."),
		"finished_at": moment("End of the attempt; null if it has not ended."),
		"peak_memory_mib": computedNumber(
			"Peak memory measured for the attempt, in MiB; null if nothing was measured.",
		),
		"peak_gpu_memory_mib": computedNumber(
			"Peak GPU memory measured for the attempt, in MiB; null if nothing was measured.",
		),
		"value": schema.Float64Attribute{
			MarkdownDescription: "Number that `objective.pattern` found in the attempt's output; null if it " +
				"found none.",
			Computed: true,
		},
		"results": resourcekit.ComputedText("Location of the files that the attempt left, on its host: a folder or a " +
			"volume; null if the sweep has no `results` or there was no attempt."),
	}
}

func computedNumber(description string) schema.Attribute {
	return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
}

func (d *sweepDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	var model dataModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &model)...); resp.Diagnostics.HasError() {
		return
	}
	key, name := model.Cluster.Key(), model.Name.ValueString()
	reconciler, err := d.Session.Open(key)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, "Unable to read the sweep", err)
		return
	}
	found, err := reconciler.SweepRuns(ctx, name)
	if err != nil {
		resourcekit.AddReadError(&resp.Diagnostics, path.Root("name"),
			fmt.Sprintf("sweep %q in cluster %q", name, key.Name), err)
		return
	}
	summary := sweep.Summarise(found.Document, found.Spec, found.Runs)
	waits := ""
	if summary.Counts[domain.RunQueued] > 0 {
		outlook, err := reconciler.SweepOutlook(ctx)
		if err != nil {
			resourcekit.AddReadError(&resp.Diagnostics, path.Root("name"),
				fmt.Sprintf("what runs of sweep %q wait for", name), err)
			return
		}
		waits = outlook[name]
	}
	model.ID = types.StringValue(domain.GroupID(key.Name, name))
	model.summarise(summary)
	model.setRuns(found, waits, reconciler.ResultsPlace)
	model.Parallelism = parallelismOf(found)
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

// summarise sets the counts of a sweep.
func (m *dataModel) summarise(s sweep.Summary) {
	m.Total, m.Ended = types.Int64Value(int64(s.Total)), types.BoolValue(s.Ended())
	m.Counts = make(map[string]int64, len(domain.RunStates))
	for _, state := range domain.RunStates {
		m.Counts[string(state)] = int64(s.Counts[state])
	}
	if left, known := s.Left(); known {
		m.TimeLeft = new(left.Round(time.Second).String())
	}
}

// setRuns sets the runs of a sweep; waits is what queued runs wait for, and place returns where the results of a run
// are.
func (m *dataModel) setRuns(found reconcile.Sweep, waits string, place func(sweep, key string, run domain.Run) string) {
	now := time.Now()
	m.Runs, m.Ranking = make(map[string]runDataModel, len(found.Spec.Runs)), []string{}
	current := make(map[string]domain.Run, len(found.Spec.Runs))
	for key := range found.Spec.Runs {
		run := sweep.Now(found.Document, found.Spec.Run(key), found.Runs[key])
		current[key] = run
		shown := flattenRun(run, domain.RunName(found.Spec.Name, key))
		shown.Reason = resourcekit.OrNull(sweep.Reason(found.Spec.Retry, run, waits, now))
		shown.Results = resourcekit.OrNull(place(found.Spec.Name, key, run))
		m.Runs[key] = shown
	}
	if objective := found.Spec.Objective; objective != nil {
		m.Ranking = append(m.Ranking, sweep.Ranked(*objective, current)...)
	}
	if len(m.Ranking) > 0 {
		m.Best = &m.Ranking[0]
	}
}

func flattenRun(run domain.Run, member string) runDataModel {
	m := runDataModel{
		State: string(run.State), Member: member, Attempts: int64(run.Attempts), Failures: int64(run.Failures),
		OutOfMemory: int64(run.OutOfMemory), GPUs: []string{},
		ExitCode: resourcekit.Integer[int64](run.ExitCode), StartedAt: resourcekit.Moment(run.StartedAt),
		FinishedAt:    resourcekit.Moment(run.FinishedAt),
		PeakMemoryMiB: run.PeakMemoryMiB, PeakGPUMemoryMiB: run.PeakGPUMemoryMiB,
		Value: types.Float64PointerValue(run.Value),
	}
	if at := run.Assignment; at != nil {
		m.Host, m.GPUs = resourcekit.OrNull(at.Host), append(m.GPUs, at.GPUs.UUIDs()...)
	}
	return m
}

// NewDataSource returns trainyard_sweep for clusters of these engines.
func NewDataSource(engines []string) datasource.DataSource {
	return &sweepDataSource{resourcekit.NewDataSource("sweep", engines)}
}
