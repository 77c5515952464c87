package sweep

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"strings"

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

//go:embed resource.md
var resourceDescription string

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
			MarkdownDescription: "Name of the sweep within its cluster, a DNS label: lower-case letters, digits and " +
				"hyphens, starting with a letter. It must differ from the names of the cluster's groups. Forces " +
				"replacement.",
			Required:      true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"runs": schema.StringAttribute{
			MarkdownDescription: "Environment variables of each run, keyed by run: `{ \"lr-1\" = { LR = \"0.1\" } " +
				"}`. Keys are DNS labels; 1 to 10,000 runs. Values can be templates. Runs are stored in plain text, " +
				"in the state and with the cluster.",
			CustomType: packed.Type[variablesByRun]{},
			Required:   true,
			Validators: []validator.String{packed.NoNullValues()},
		},
		"config": schema.StringAttribute{
			MarkdownDescription: "File content by run key, for each run that needs a file, up to about 400,000 bytes " +
				"each. The run finds its path in `TRAINYARD_CONFIG`; the file is called `config.json` if it is JSON, " +
				"otherwise `config`. " +
				"Changing it reruns that run. It is stored in plain text, as `runs` are. Defaults to none.",
			CustomType: packed.Type[map[string]string]{},
			Optional:   true,
			Validators: []validator.String{packed.NoNullValues()},
		},
		"max_parallel": number("Maximum number of concurrent runs, 1 or more. Defaults to as many as there is room " +
			"for, or to as many as `progress` finds best; for runs that request nothing and report no progress, to " +
			"the total number of the hosts' CPUs."),
		"priority": number("Priority of the sweep, any integer: among sweeps with waiting runs, the one with the " +
			"higher number starts its runs first. Running runs of other sweeps are not preempted. Roles under an " +
			"autoscaling policy in groups of lower priority give way to runs that wait for room: they scale in, down " +
			"to the policy's `min`. See the guide \"Autoscaling\". Defaults to 0."),
		"resources": group.ResourcesAttribute("run"),
		"gpus": group.GPUsAttribute("run", "GPUs from a GPU pool for each run, all on one host. The run finds their "+
			"UUIDs in `CUDA_VISIBLE_DEVICES` and `NVIDIA_VISIBLE_DEVICES`. "+
			"Once it has ended, the next run can get them."),
		"placement": group.PlacementAttribute("Which hosts the runs start on.",
			"`spread` (evenly over the hosts) or `pack` (onto as few hosts as possible)."),
		"grace_period": group.GracePeriodAttribute("run"),
		"exit_codes":   group.ExitCodesAttribute("How `retry` treats exit codes."),
		"admission": object("Memory that must be measured as free before a run starts. Without it, only the "+
			"requests of runs and members count.", admissionAttributes()),
		"retry": object("How failed runs are retried.", retryAttributes()),
		"on_failure": object("What happens to the other runs once some have failed. Defaults to none: they go on.",
			failureAttributes()),
		"on_finish": object("Hook that is called once for each end of a run, and not for attempts that are followed "+
			"by another. A call is repeated after a failure, and possibly after a change of controller: deduplicate "+
			"by `run` and `ended_at`. It receives JSON about the run, see above.",
			hookAttributes()),
		"results": object("Where runs write result files. The data source `trainyard_sweep` has each run's location, "+
			"and `terraform-provider-trainyard sweep results` fetches the files. "+
			"Missing results are drift: the plan adds their runs to `runs` again, and an apply reruns them. Defaults "+
			"to none: no files are kept.",
			resultsAttributes()),
		"objective": object("Number in the output of runs, by which they are ranked. Defaults to none.",
			objectiveAttributes()),
		"progress": object("How runs report progress. With it, the sweep searches for the number of concurrent runs "+
			"with the highest total throughput: it starts with one on each GPU (or host, for runs without `gpus`), "+
			"and adds one more as long as that raises the throughput. "+
			"`max_parallel` still limits the total. Changing `progress` restarts the search. The guide \"Sweeps\" "+
			"describes the search.", progressAttributes()),
		"wait_for": choice("What an apply waits for: `accepted` (the sweep is stored, and its runs start as there is "+
			"room) or `completed` (all runs have ended; the apply warns of those that did not succeed). `timeouts` "+
			"limits the wait.",
			string(domain.WaitAccepted)),
		"rerun": choice("Which runs start again when the sweep changes: `changed` (all, if what they run changed, "+
			"such as `image` or `env`), `failed` (those that did not succeed, if what they run, `resources`, `gpus` "+
			"or `triggers` changed) or `all` (all, if what they run or `triggers` changed). A run whose own variables "+
			"changed always starts again. A waiting run starts with the latest specification.",
			string(domain.RerunChanged)),
		"triggers": schema.MapAttribute{
			MarkdownDescription: "Arbitrary map of strings. A change reruns runs if `rerun` is `failed` or `all`; " +
				"with `changed`, it has no effect. Defaults to none.",
			ElementType: types.StringType,
			Optional:    true,
			Validators:  []validator.Map{mapvalidator.NoNullValues()},
		},
		"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout,
			"If `wait_for` is `completed`, it must cover all runs, and defaults to `168h` (a week).",
			"It must cover the runs' grace period."),
	}
	// Secrets are refused by the domain, not missing here: Terraform silently drops what an object's schema lacks.
	maps.Copy(attributes, group.TemplateAttributes(group.Precedence{
		Env: "A run's own variables are added and take precedence.",
		Container: "`secrets` are not allowed: they are only available during an apply, and runs start later. Mount " +
			"a file from the hosts instead.",
	}))
	return schema.Schema{MarkdownDescription: strings.TrimSpace(resourceDescription), Attributes: attributes}
}

// hookAttributes are those of the hook. Its URL is sensitive, as that of a chat's webhook is a secret.
func hookAttributes() map[string]schema.Attribute {
	attributes := policy.HookAttributes()
	attributes["url"] = schema.StringAttribute{
		MarkdownDescription: "`http://` or `https://` URL that receives the JSON by POST. Set this or `command`. " +
			"Stored in plain text, in the state and with the cluster: the guide \"Sweeps\" says how to keep a secret " +
			"out of both.",
		Optional: true, Sensitive: true,
	}
	return attributes
}

func admissionAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"free_gpu_memory": flag(
			"Whether a run starts only on GPUs with `gpus.memory_mib` plus the reserve measured as free.",
		),
		"free_memory": flag("Whether a run starts only on a host with `resources.memory_mib` measured as free."),
		"reserve_percent": schema.Float64Attribute{
			MarkdownDescription: "GPU memory to leave free beside the run's, in percent, from 0 to below 100. " +
				"Defaults to 3.",
			Optional: true,
		},
		"settle": duration("Time after the start of a run in which its GPU takes no further run (with " +
			"`free_gpu_memory`), and the run's `memory_mib` is subtracted from its host's free memory (with " +
			"`free_memory`), because programs allocate memory late; from `0s` to `1h`. Defaults to `20s`."),
	}
}

func retryAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"max_attempts": number(
			"Number of failed attempts after which a run has failed for good; 0 means no limit. Defaults to 1: " +
				"no retries.",
		),
		"out_of_memory": number("Number of attempts, 1 or more, that run out of GPU memory before the run is no " +
			"longer retried and ends as `out_of_memory`. Defaults to 5."),
		"out_of_memory_patterns": schema.ListAttribute{
			MarkdownDescription: "Regular expressions ([RE2](https://github.com/google/re2/wiki/Syntax)) for log " +
				"lines that report running out of GPU memory, in addition to those of CUDA, PyTorch, TensorFlow and " +
				"JAX. Defaults to none.",
			ElementType: types.StringType,
			Optional:    true,
			Validators:  []validator.List{listvalidator.NoNullValues()},
		},
		"delay": duration("Delay before the second attempt, such as `30s`. It doubles with each further attempt, up " +
			"to five minutes. Defaults to `1s`."),
	}
}

func failureAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"after": schema.Int64Attribute{
			MarkdownDescription: "Number of failed runs, 1 or more.",
			Required:            true,
		},
		"then": schema.StringAttribute{
			MarkdownDescription: "`stop` (cancel all runs that have not ended) or `drain` (cancel those that wait, " +
				"and let those that run end). Defaults to `stop`.",
			Optional: true,
		},
	}
}

func resultsAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"path": schema.StringAttribute{
			MarkdownDescription: "Folder for the results, which outlives the attempts of a run: each run finds its " +
				"own in `TRAINYARD_RESULTS`, see above. On `process` and `systemd`, a relative path such as " +
				"`results`, below the run's own folder, or an absolute one on the host. On `swarm`, an absolute path " +
				"in the container. A change reruns the same runs as a change to `env`.",
			Required: true,
		},
		"on_destroy": schema.StringAttribute{
			MarkdownDescription: "What happens to the results when the sweep is destroyed: `keep` (a warning says " +
				"where they are) or `delete`. Results of runs removed from `runs` are kept. Defaults to `keep`.",
			Optional: true,
		},
		"collect_to": schema.StringAttribute{
			MarkdownDescription: "Folder on the machine that runs Terraform, to which a destroy writes the runs' " +
				"results before it applies `on_destroy`: " +
				"as `<cluster>-<sweep>-<time>.tar`, with a folder for each run, like `sweep results`. Running runs " +
				"are stopped first. If collecting fails, the sweep and its results stay, and the next destroy tries " +
				"again. Set `timeouts.delete` for large results. Defaults to none.",
			Optional: true,
		},
	}
}

func objectiveAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"pattern": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("Regular expression ([RE2](https://github.com/google/re2/wiki/Syntax)) "+
				"with one capturing group, which matches the number: `accuracy=([0-9.]+)`. The last matching line "+
				"among a run's last %d lines counts.", sweep.LogTail),
			Required: true,
		},
		"goal": schema.StringAttribute{
			MarkdownDescription: "`maximise` or `minimise`. Defaults to `maximise`.",
			Optional:            true,
		},
	}
}

// object is an optional object; number, flag and duration are optional attributes of their types.
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

// choice is an optional text with a default.
func choice(description, fallback string) schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: description + " Defaults to `" + fallback + "`.",
		Optional:            true,
		Computed:            true,
		Default:             stringdefault.StaticString(fallback),
	}
}
