package policy

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

//go:embed resource.md
var resourceDescription string

// Schema is the schema of trainyard_autoscaling_policy.
func Schema(ctx context.Context, engines []string) schema.Schema {
	attributes := ScalingAttributes(measuredAttributes())
	maps.Copy(attributes, map[string]schema.Attribute{
		"id": schema.StringAttribute{
			MarkdownDescription: "`<cluster>/<group>/<role>`.",
			Computed:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"cluster": resourcekit.ClusterReferenceAttribute(engines),
		"group": replacingText(
			"Name of the group, as a reference: `trainyard_group.spark.name`. Forces replacement.",
		),
		"role": replacingText("Name of the role, which must omit `replicas`. Forces replacement."),
		"guards": schema.SingleNestedAttribute{
			MarkdownDescription: "Guards against harmful changes to the count, whatever the metrics ask for. " +
				"Defaults to none.",
			Optional:   true,
			Attributes: guardAttributes(),
		},
		"hooks": optionalObject("Your programs or URLs, called before members are removed and after members are "+
			"added, for example to move data between them. A hook may answer that it is still working; "+
			"it is then polled until it is done, even after a restart of the controller: see the guide "+
			"\"Autoscaling\".", map[string]schema.Attribute{
			"before_removal": optionalObject("Called before members are removed, with their names. If it fails, or "+
				"takes longer than `timeout`, the members stay, and it is called again as long as they are to be "+
				"removed. Once it is done, the members are stopped, with their role's `grace_period`. "+
				"Not available for interchangeable members that the engine itself places, as `swarm` does: the "+
				"engine chooses which ones go.", lastingHookAttributes()),
			"after_addition": optionalObject("Called once added members run, with their names unless the engine "+
				"chooses them. If it fails, or takes longer than `timeout`, the history says so, and the "+
				"members stay. "+
				"While it runs, no members are removed.", lastingHookAttributes()),
		}),
		"vertical": verticalAttribute(),
		"dry_run": schema.BoolAttribute{
			MarkdownDescription: "Whether decisions are only recorded, with their reasons, and not carried out. " +
				"Defaults to `false`.",
			Optional: true,
		},
		"paused": scalingText("What to pause: `all` leaves the count as it is, even out of bounds; `out` keeps " +
			"members from being added, `in` from being removed; `none` pauses nothing. Defaults to `none`."),
		"on_destroy": scalingText("What happens to the count when the policy is destroyed: it stays (`keep`), goes " +
			"back to what it was before the policy (`restore`), or goes to the minimum (`min`). " +
			"If that is not possible, the count stays, and a warning says why. A policy in `dry_run` leaves it as it " +
			"is. Defaults to `keep`."),
		"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout, "It does not cover the policy's decisions.",
			"It covers the change of the count for `on_destroy`."),
	})
	return schema.Schema{MarkdownDescription: strings.TrimSpace(resourceDescription), Attributes: attributes}
}

// replacingText is a required text whose change forces replacement.
func replacingText(description string) schema.StringAttribute {
	attribute := neededText(description)
	attribute.PlanModifiers = []planmodifier.String{stringplanmodifier.RequiresReplace()}
	return attribute
}

// optionalObject is an optional object.
func optionalObject(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{MarkdownDescription: description, Optional: true, Attributes: attributes}
}

// measuredAttributes are the additional attributes of a metric with a source.
func measuredAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"source": optionalObject("Source of the values: exactly one of `agent`, `prometheus`, `queue` and "+
			"`progress`. The algorithms `ratio`, `external` and `idle_room` need none.", sourceAttributes()),
		"window": scalingDuration("Time window up to now, whose values `aggregation` combines into one: from `1s` to " +
			"`10m` for `agent`, to `1h` for other sources. Defaults to `" + written(
			domain.DefaultAgentWindow,
		) + "` for `agent` and `progress`, and to the last value alone for other sources."),
		"aggregation": scalingText("How the values of the window are combined: their mean (`mean`), maximum (`max`), " +
			"95th percentile (`p95`) or the last value (`last`). Defaults to `mean`."),
		"ready_after": scalingDuration("How long a member must run before its CPU usage counts, from `0s` to `1h`, " +
			"for `cpus` and `cpu_percent` per member from `agent`: startup also uses CPUs, but is not load. " +
			"Until then, the member is not ready for this metric: it adds no members, and counts as idle when others " +
			"ask for more. Defaults to `window`."),
	}
}

func sourceAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"agent": optionalObject("What the hosts' agents measure of the role's members.", map[string]schema.Attribute{
			"measure": neededText("What to measure: CPUs in use (`cpus`), resident memory in MiB (`memory_mib`), " +
				"either of these in percent of what the role requests (`cpu_percent`, `memory_percent`), the " +
				"percentage of time in which a member's GPUs were busy (`gpu_percent`), the GPU memory that it uses " +
				"in MiB (`gpu_memory_mib`), or the percentage of its GPUs' memory in use by any process " +
				"(`gpu_memory_percent`)."),
			"of": scalingText(
				"The mean over the members (`member`) or the sum of all (`total`). Defaults to `member`.",
			),
			"window": misplaced("window"),
		}),
		"prometheus": optionalObject("Result of a Prometheus query.",
			prometheusSourceAttributes(
				"PromQL query that returns one value, such as `sum(rate(http_requests_total[1m]))`.",
			)),
		"queue": optionalObject("Length of a queue. Set exactly one attribute.", map[string]schema.Attribute{
			"http": optionalObject("Number in the JSON response of a URL.", endpointAttributes("queue.length")),
			"redis": optionalObject("Length of a Redis list.", map[string]schema.Attribute{
				"address":  neededText("`<host>:<port>`."),
				"key":      neededText("Key of the list. A key that does not exist counts as an empty list."),
				"database": scalingWhole("Database number. Defaults to 0."),
			}),
			"command": scalingTexts("Program and arguments. The program prints the length. It runs beside the " +
				"cluster's controller, so it is not available on `swarm`, where the controller's container has " +
				"no programs."),
		}),
		"progress": optionalObject("Progress of the members in steps per second, read from their logs.",
			map[string]schema.Attribute{
				"pattern": neededText("Regular expression in [Go syntax](https://pkg.go.dev/regexp/syntax). A group " +
					"named `step` matches the number of the step, which counts up, as in `step (?P<step>\\d+)`. " +
					"Without the group, each matching line is a step."),
				"role": scalingText("Role whose logs are read. Defaults to the policy's role."),
				"combine": scalingText("How the progress of several members is combined. Use `sum` if each works on " +
					"steps of its own. If all report the same steps, use `mean`, which is known once all of them " +
					"report, or `max`, for which one member is enough. Defaults to `sum`."),
				"window": misplaced("window"),
			}),
	}
}

func prometheusSourceAttributes(query string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"url": neededText("`http://` or `https://` URL of the server, as the controller reaches it. On a Swarm, " +
			"the controller is in the cluster's network, where it reaches members by name."),
		"query": neededText(query),
	}
}

// lastingHookAttributes are the attributes of a hook that may run for long.
func lastingHookAttributes() map[string]schema.Attribute {
	attributes := HookAttributes()
	attributes["timeout"] = scalingDuration(fmt.Sprintf("Total time limit, from `%s` to `%s`. Defaults to `%s`.",
		written(domain.MinHookTimeout), written(domain.MaxScalingHookTimeout), written(domain.DefaultHookTimeout)))
	return attributes
}

// endpointAttributes are the attributes of a number from a JSON endpoint.
func endpointAttributes(example string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"url": neededText("`http://` or `https://` URL, read by GET."),
		"path": scalingText("Path to the number, in [GJSON " +
			"syntax](https://github.com/tidwall/gjson/blob/master/SYNTAX.md), such as `" + example +
			"`. Defaults to the whole response."),
	}
}

func guardAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"busy": optionalObject("Keeps busy members from being removed. Set at least one signal; any one is enough, "+
			"and a signal that can't be read counts as busy. "+
			"Interchangeable members that the engine itself places, as `swarm` does, all stay while one of them is "+
			"busy: the engine chooses which ones go.", map[string]schema.Attribute{
			"prometheus": optionalObject("Prometheus query for all members together.", prometheusSourceAttributes(
				"PromQL query whose value is not 0 while members are busy, such as Spark's "+
					"`metrics_master_apps_Value`.",
			)),
			"http": optionalObject("JSON endpoint for all members together: a number other than 0, or `true`, while "+
				"any is busy. Spark's master has one: `url = \"http://spark-master-0:8080/json/\"`, `path = "+
				"\"activeapps.#\"`, the number of running applications.",
				endpointAttributes("activeapps.#")),
			"pauses": scalingText("What `prometheus` and `http` pause while members are busy, or while that is " +
				"unknown: the removal of members (`in`), or any change of the count, even if it is out of bounds " +
				"(`all`), for example while partitions move. Defaults to `in`."),
			"cpu_percent": scalingNumber("CPU usage, in percent of what the role requests, at or above which a " +
				"member due for removal counts as busy; above 0. Defaults to none: CPU usage is not a signal."),
			"gpu_percent": scalingNumber("GPU utilisation, in percent, at or above which a member due for removal " +
				"counts as busy; above 0, up to 100. Defaults to none: GPU utilisation is not a signal."),
		}),
		"at_least": optionalObject("Minimum count read from a source, such as the replication factor of the data. "+
			"Set exactly one attribute. No member is removed below this count, whatever else asks for that, "+
			"including `max` and `member_hours_per_day`, "+
			"and none while the count is unknown. If there are fewer members, some are added, up to `max`, as if a "+
			"metric had asked for them. Fractions are rounded up.", map[string]schema.Attribute{
			"prometheus": optionalObject("Result of a Prometheus query.", prometheusSourceAttributes(
				"PromQL query that returns the count, such as `max(kafka_topic_replication_factor)`.",
			)),
			"http": optionalObject("Number in the JSON response of a URL.", endpointAttributes("replicas")),
		}),
		"remove": scalingText(fmt.Sprintf("Which members are removed first: those with the highest index (`%s`), "+
			"those that use the least CPU (`%s`), or those on the hosts with the highest CPU usage (`%s`). The last "+
			"two are for interchangeable members (workers of `spark` and `ray`), unless the engine itself places "+
			"them, as `swarm` does those without GPUs. Defaults to `%[1]s`.",
			domain.RemoveHighestIndex, domain.RemoveLeastBusy, domain.RemoveMostLoadedHost)),
		"member_hours_per_day": scalingNumber("Maximum member-hours per day (UTC), summed over all members of the " +
			"role. Once they are used up, the role has its minimum count. 0, the default, means no limit."),
	}
}
