package sweep

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/packed"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

const resourceDescription = "Independent runs of one program, each to its end: seeds, learning rates, shards of data. Runs wait until there is room for them, and one that fails stops no other.\n\n" +
	"A run is known by its key. A key that is added, removed or changed touches that run alone, and a run that has ended stays so: finished is not drift. " +
	"Which runs start anew when the program changes is said by `rerun`, and a plan says how many.\n\n" +
	"Each run is a member, `<sweep>-<key>-0`, that the cluster's controller starts: those of the sweep with the highest `priority` first, then of the older one, in the order of their keys. " +
	"States, reasons and values are in the data source `trainyard_sweep`, and what runs wrote in `trainyard_logs`. The guide \"Sweeps\" tells more.\n\n" +
	"## GPU memory\n\n" +
	"Several runs share a card of a GPU pool whose `sharing` is `slots`. With `admission.free_gpu_memory`, a run starts only where the driver measures the memory that it needs to be free. Where others use the card, too, set the pool's `on_foreign_process` to `ignore`: by default such a card takes no runs. " +
	"A run that runs out of GPU memory all the same, by what it wrote, is queued again; that uses up none of `retry.max_attempts`, and the card takes no more runs until one of those beside it has ended.\n\n" +
	"## Environment and templates\n\n" +
	"Besides `env` and its own variables in `runs`, a run gets `TRAINYARD_RUN` (its key), `TRAINYARD_ATTEMPT` (from 1), `TRAINYARD_CONFIG` and `TRAINYARD_RESULTS` (the paths of its `config` and of the folder for its `results`), `TRAINYARD_CLUSTER`, `_GROUP` (the sweep), `_MEMBER` and `_HOST`, and `CUDA_VISIBLE_DEVICES=-1` (no GPU) unless there is `gpus`, or `env` says otherwise.\n\n" +
	"In `command`, `args`, and the values of `env` and `runs`, a string that contains `{{` is a [template](https://pkg.go.dev/text/template), rendered for each run: `.Env.LR` is the run's variable `LR`, `.Role` its key, " +
	"and `.Name`, `.Group`, `.Cluster`, `.Host` and `.Address` are those of its member. A template that can't be rendered is an error at plan."

// Schema is the schema of trainyard_sweep.
func Schema(ctx context.Context, engines []string) schema.Schema {
	attributes := map[string]schema.Attribute{
		"id": schema.StringAttribute{
			MarkdownDescription: "`<cluster>/<sweep>`.",
			Computed:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"cluster": resourcekit.ClusterReferenceAttribute(engines),
		"name": schema.StringAttribute{
			MarkdownDescription: "Name of the sweep within its cluster, a DNS label: lower-case letters, digits and hyphens, a letter first. It differs from those of the cluster's groups. Forces replacement.",
			Required:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"runs": schema.StringAttribute{
			MarkdownDescription: "The runs: environment variables of each by name, by the run's key, which is a DNS label; at most 10,000. Values can be templates. They are stored in plain text, in the state and with the cluster.",
			CustomType:          packed.Type[variablesByRun]{},
			Required:            true,
			Validators:          []validator.String{packed.NoNullValues()},
		},
		"config": schema.StringAttribute{
			MarkdownDescription: "A file for each run that needs one: its content by the run's key. The run finds its path in `TRAINYARD_CONFIG`; it is called `config.json` if it is JSON, and `config` if not. " +
				"A change of it reruns that run. It is stored in plain text, as `runs` are. Defaults to none.",
			CustomType: packed.Type[map[string]string]{},
			Optional:   true,
			Validators: []validator.String{packed.NoNullValues()},
		},
		"max_parallel": number("Number of runs at a time, 1 or more. Defaults to as many as there is room for, or as finish most by their `progress`; of runs that request nothing and report none, to the number of the hosts' processors."),
		"priority":     number("Of sweeps whose runs wait, the one with the higher number starts its runs first. It ends no run of another. Roles under a policy whose groups have a lower one give way to runs that wait for room, down to the policy's `min`, see the guide \"Autoscaling\". Defaults to 0."),
		"resources":    group.ResourcesAttribute("run"),
		"gpus": group.GPUsAttribute("run", "GPUs that each run gets of a GPU pool, all of them on one host. It finds their UUIDs in `CUDA_VISIBLE_DEVICES` and `NVIDIA_VISIBLE_DEVICES`. "+
			"The next run may have them once it has ended."),
		"placement":    group.PlacementAttribute("On which hosts runs are started.", "`spread` (over the hosts evenly) or `pack` (onto as few hosts as possible)."),
		"grace_period": group.GracePeriodAttribute("run"),
		"exit_codes":   group.ExitCodesAttribute("What exit codes mean to `retry`."),
		"admission":    object("What has to be measured as free before a run starts. Without it, what runs and members request counts alone.", admissionAttributes()),
		"retry":        object("How often a run that failed is started again.", retryAttributes()),
		"on_failure":   object("What happens to the other runs once some have failed. Defaults to nothing: they go on.", failureAttributes()),
		"on_finish": object("Who is told of each attempt of a run that has ended, at least once: of one that can't be told it is tried again. It is JSON, with the fields `cluster`, `sweep`, `run`, `attempt`, "+
			"`state` (what the run is then: `queued` where it is tried again), `exit_code` (null where it was cancelled), `reason`, `value`, `results` (where they are), `host`, `gpus`, `started_at` and `finished_at`. Sweep, run, attempt and `started_at` tell it from all others.",
			policy.HookAttributes()),
		"results": object("Where runs leave files. The data source `trainyard_sweep` says where those of each run are, and `terraform-provider-trainyard sweep results` fetches them. "+
			"Results that are gone are drift: the plan adds their runs to `runs` again, and an apply reruns those. Defaults to nothing being kept of files.",
			resultsAttributes()),
		"objective": object("A number that runs write, by which they are compared.", objectiveAttributes()),
		"progress": object("How runs report progress. With it, the sweep finds how many runs side by side finish most: it starts with one on each GPU (or host, where runs have no `gpus`), and adds one more as long as all together get on faster for it. "+
			"`max_parallel` still bounds them all. A change of it starts the search anew. The guide \"Sweeps\" tells how it is found.", progressAttributes()),
		"wait_for": choice("What an apply waits for: `accepted` (the sweep is stored, and its runs start as there is room) or `completed` (all runs have ended; an apply warns of those that did not succeed); see `timeouts` for how long.",
			string(domain.WaitAccepted)),
		"rerun": choice("Which runs start anew when the sweep changes: `changed` (all, if what they run changed, such as `image` or `env`), `failed` (those that did not succeed, if what they run, `resources`, `gpus` or `triggers` changed) "+
			"or `all` (all, if what they run or `triggers` changed). A run whose own variables changed does in any case, and one that waits starts with what is declared then.", string(domain.RerunChanged)),
		"triggers": schema.MapAttribute{
			MarkdownDescription: "Any strings by any names. A change makes runs start anew where `rerun` is `failed` or `all`. Defaults to none.",
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.Map{mapvalidator.NoNullValues()},
		},
		"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout,
			"Where `wait_for` is `completed` it has to cover all runs, and defaults to `168h`, a week.", "It has to cover the grace period of the runs."),
	}
	maps.Copy(attributes, group.TemplateAttributes(group.Precedence{
		Env:       "A run's own variables are added; where both set one, the run's value counts.",
		Container: "Runs get no `secrets`: those are handed over by an apply, and runs start later. Mount a file of the hosts.",
	}))
	return schema.Schema{MarkdownDescription: resourceDescription, Attributes: attributes}
}

func admissionAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"free_gpu_memory": flag("Whether a run starts only on GPUs of which `gpus.memory_mib`, and the reserve, are measured to be free."),
		"free_memory":     flag("Whether a run starts only on a host of which `resources.memory_mib` are measured to be free."),
		"reserve_percent": schema.Float64Attribute{
			MarkdownDescription: "How much of a GPU's memory is left free beside the run's, in percent, 0 to below 100. Defaults to 3.",
			Optional:            true,
		},
		"settle": duration("How long a GPU (with `free_gpu_memory`) or a host (with `free_memory`) takes no further run after one was started, as a program takes its memory late; up to `1h`. Defaults to `20s`."),
	}
}

func retryAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"max_attempts":  number("Number of failures after which a run has failed for good; 0 sets no bound. Defaults to 1: no second attempt."),
		"out_of_memory": number("Number of attempts that ran out of GPU memory after which a run is not tried again, and is `out_of_memory`. Defaults to 5."),
		"out_of_memory_patterns": schema.ListAttribute{
			MarkdownDescription: "Regular expressions ([RE2](https://github.com/google/re2/wiki/Syntax)) of log lines that tell that GPU memory ran out, besides those of CUDA, PyTorch, TensorFlow and JAX. Defaults to none.",
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.List{listvalidator.NoNullValues()},
		},
		"delay": duration("Time between a failure and the second attempt, as a duration such as `30s`; it doubles with each further one, up to five minutes. Defaults to `1s`."),
	}
}

func failureAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"after": schema.Int64Attribute{
			MarkdownDescription: "Number of failed runs, 1 or more.",
			Required:            true,
		},
		"then": schema.StringAttribute{
			MarkdownDescription: "`stop` (all runs that have not ended are cancelled) or `drain` (those that wait are cancelled, and those that run may end). Defaults to `stop`.",
			Optional:            true,
		},
	}
}

func resultsAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"path": schema.StringAttribute{
			MarkdownDescription: "Folder of the results, which outlives the attempts of a run. Each run finds its own in `TRAINYARD_RESULTS`. " +
				"On `process` and `systemd`, a relative path such as `results` is below the run's own folder, and an absolute one gets a folder of the host for each run, `<path>/<sweep>/<key>`, which a container finds at the same path. " +
				"On `swarm` it is an absolute path in the container: each run gets a named volume there, on the host where it runs. In a mount that `mounts` declares, of a named volume or of a folder that all hosts share, " +
				"it is `<path>/<sweep>/<key>`, which the program has to make. A change reruns what a change of `env` does.",
			Required: true,
		},
		"on_destroy": schema.StringAttribute{
			MarkdownDescription: "What happens to the results when the sweep is destroyed: `keep` (a warning says where they are) or `delete`. Those of runs that are taken out of `runs` are kept. Defaults to `keep`.",
			Optional:            true,
		},
		"collect_to": schema.StringAttribute{
			MarkdownDescription: "Folder of the machine that runs Terraform, into which a destroy writes what the runs left, before `on_destroy` is done: " +
				"as `<cluster>-<sweep>-<time>.tar`, with a folder for each run, as `sweep results` does. Runs are ended first. If that fails, the sweep and its results stay, and the next destroy tries again. Set `timeouts.delete` for large ones. Defaults to none.",
			Optional: true,
		},
	}
}

func objectiveAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"pattern": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("Regular expression ([RE2](https://github.com/google/re2/wiki/Syntax)) with one group in parentheses, which matches the number: `accuracy=([0-9.]+)`. Of the last %d lines of a run, the last one that matches counts.", sweep.LogTail),
			Required:            true,
		},
		"goal": schema.StringAttribute{
			MarkdownDescription: "`maximise` or `minimise`. Defaults to `maximise`.",
			Optional:            true,
		},
	}
}

// object is an object that may be left out; number, flag and duration are the same of their kinds.
func object(description string, attributes map[string]schema.Attribute) schema.Attribute {
	return schema.SingleNestedAttribute{MarkdownDescription: description, Optional: true, Attributes: attributes}
}

func number(description string) schema.Attribute {
	return schema.Int64Attribute{MarkdownDescription: description, Optional: true}
}

func flag(description string) schema.Attribute {
	return schema.BoolAttribute{MarkdownDescription: description + " Defaults to `false`.", Optional: true}
}

func duration(description string) schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Validators:          []validator.String{resourcekit.IsDuration()},
		PlanModifiers:       []planmodifier.String{resourcekit.SameDuration()},
	}
}

// choice is one of some words, and a default.
func choice(description, fallback string) schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: description + " Defaults to `" + fallback + "`.",
		Optional:            true,
		Computed:            true,
		Default:             stringdefault.StaticString(fallback),
	}
}
