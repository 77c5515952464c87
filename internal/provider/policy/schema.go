package policy

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

const resourceDescription = "Scales a group's role by what is measured, between a minimum and a maximum number of members. Bounds and rules belong to Terraform, the count belongs to the policy: " +
	"it is in no state and never shows as a difference. A change of the policy takes effect with the apply.\n\n" +
	"Omit `replicas` from the role: `replicas` and a policy for one role are an error, as are two policies. Refer to the group by `group = trainyard_group.name.name`, so that it is planned and created first.\n\n" +
	"The cluster's controller decides every `interval`, even while nothing is being applied. It changes nothing while an apply holds the group, while members of it are being replaced, or while one of their hosts is down. It asks for no more members than can be placed. " +
	"Its decisions are shown by `terraform-provider-trainyard autoscale explain` and the data source `trainyard_scaling_history`.\n\n" +
	"The controller reads the metrics. Whatever it queries must answer without credentials: policies hold none.\n\n" +
	"The guide \"Autoscaling\" says which algorithm fits what, and `trainyard_policy_backtest` tests a policy with a recorded load before you run it."

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
		"group":   replacingText("Name of the group, by reference: `trainyard_group.spark.name`. Forces replacement."),
		"role":    replacingText("Name of the role, which must omit `replicas`. Forces replacement."),
		"guards": schema.SingleNestedAttribute{
			MarkdownDescription: "Guards against harmful changes of the count, whatever the metrics ask for.",
			Optional:            true,
			Attributes:          guardAttributes(),
		},
		"hooks": optionalObject("Programs or addresses of yours that are notified which members are removed and added, for example to move data between them. They may answer that they are still working; they are then polled until they are done, "+
			"even by a restarted controller: see the guide \"Autoscaling\".", map[string]schema.Attribute{
			"before_removal": optionalObject("Called before members are removed, with their names. If it fails, or takes longer than `timeout`, the members stay, and it is called again as long as they are to be removed. Once it is done, the members are ended within their role's `grace_period`. "+
				"Not available for interchangeable members that the engine distributes by itself, as `swarm` does: the engine chooses which go.", lastingHookAttributes()),
			"after_addition": optionalObject("Called once added members run, with their names unless the engine chooses them. If it fails, or takes longer than `timeout`, the history says so, and the members stay. "+
				"While it is at work, no members are removed.", lastingHookAttributes()),
		}),
		"vertical": verticalAttribute(),
		"dry_run": schema.BoolAttribute{
			MarkdownDescription: "Whether decisions are only recorded, with their reasons, and not carried out. Defaults to `false`.",
			Optional:            true,
		},
		"paused": scalingText("What to pause: `all` leaves the count as it is, even out of bounds; `out` keeps members from being added, `in` from being removed; `none` pauses nothing. Defaults to `none`."),
		"on_destroy": scalingText("What happens to the count when the policy is destroyed: it stays (`keep`), goes back to what it was before the policy (`restore`), or goes to the minimum (`min`). " +
			"If that is not possible, the count stays, and a warning says why. A policy in `dry_run` leaves it as it is. Defaults to `keep`."),
		"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout, "It does not cover the policy's decisions.", "It covers the change of the count for `on_destroy`."),
	})
	return schema.Schema{MarkdownDescription: resourceDescription, Attributes: attributes}
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
		"source":      optionalObject("Source of the values: exactly one of `agent`, `prometheus`, `queue` and `progress`. The algorithms `ratio`, `external` and `idle_room` need none.", sourceAttributes()),
		"window":      scalingDuration("Time window up to now, whose values `aggregation` combines into one: from `1s` to `10m` for `agent`, to `1h` for other sources. Defaults to `" + written(domain.DefaultAgentWindow) + "` for `agent` and `progress`, and to the last value alone for other sources."),
		"aggregation": scalingText("How the values of the window are combined: their mean (`mean`), maximum (`max`), 95th percentile (`p95`) or the last value (`last`). Defaults to `mean`."),
		"ready_after": scalingDuration("How long a member must run before its processors count, from `0s` to `1h`, for `cpus` and `cpu_percent` per member from `agent`: starting uses processors, too, and is no load. " +
			"Until then the member is not ready by this metric: it adds no members, and counts as idle when others ask for more. Defaults to `window`."),
	}
}

func sourceAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"agent": optionalObject("What the hosts' agents measure of the role's members.", map[string]schema.Attribute{
			"measure": neededText("What to measure: busy processors (`cpus`), the same in percent of what the role requests (`cpu_percent`), resident memory (`memory_mib`), the same in percent of what the role requests (`memory_percent`), " +
				"the share of time in which a member's GPUs were working (`gpu_percent`), the GPU memory that it uses (`gpu_memory_mib`), or how much of its GPUs' memory is in use by any process (`gpu_memory_percent`)."),
			"of":     scalingText("The mean over the members (`member`) or the sum of all (`total`). Defaults to `member`."),
			"window": misplaced("window"),
		}),
		"prometheus": optionalObject("Result of a Prometheus query.", prometheusSourceAttributes("PromQL query that returns one value, such as `sum(rate(http_requests_total[1m]))`.")),
		"queue": optionalObject("Length of a queue. Set exactly one attribute.", map[string]schema.Attribute{
			"http": optionalObject("A number in the JSON response of an address.", endpointAttributes("queue.length")),
			"redis": optionalObject("Length of a Redis list.", map[string]schema.Attribute{
				"address":  neededText("`<host>:<port>`."),
				"key":      neededText("Key of the list. A key that does not exist counts as an empty list."),
				"database": scalingWhole("Database number. Defaults to 0."),
			}),
			"command": scalingTexts("A program and its arguments. The program prints the length. It runs beside the cluster's controller, so it is not available on `swarm`, whose controller has no programs."),
		}),
		"progress": optionalObject("Progress of the members in steps per second, read from their logs.", map[string]schema.Attribute{
			"pattern": neededText("Regular expression in [Go syntax](https://pkg.go.dev/regexp/syntax). A group named `step` is the number of the step, which counts up, as in `step (?P<step>\\d+)`. Without the group, each matching line is a step."),
			"role":    scalingText("Role whose logs are read. Defaults to the policy's role."),
			"combine": scalingText("How the progress of several members is combined. Use `sum` if each works on steps of its own. If all report the same steps, use `mean`, which is known once all of them report, or `max`, for which one member is enough. Defaults to `sum`."),
			"window":  misplaced("window"),
		}),
	}
}

func prometheusSourceAttributes(query string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"url":   neededText("`http://` or `https://` address of the server, as the controller reaches it. On a Swarm the controller is in the cluster's own network, where it reaches members by their names."),
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
		"url":  neededText("An `http://` or `https://` address, read by GET."),
		"path": scalingText("Path to the number, in [GJSON syntax](https://github.com/tidwall/gjson/blob/master/SYNTAX.md), such as `" + example + "`. Defaults to the whole response."),
	}
}

func guardAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"busy": optionalObject("Keeps members from being removed while they work. Any one sign is enough, and a sign that can't be read counts as one. "+
			"Interchangeable members that the engine distributes by itself, as `swarm` does, all stay while one of them works: the engine chooses which go.", map[string]schema.Attribute{
			"prometheus": optionalObject("A query that covers all members at once.", prometheusSourceAttributes("PromQL query whose value is not 0 while something works, such as `metrics_master_apps_Value` of Spark.")),
			"http": optionalObject("A JSON endpoint that covers all members at once: a number other than 0, or `true`, while something works. Spark's master has one: `url = \"http://spark-master-0:8080/json/\"`, `path = \"activeapps.#\"`, the number of running applications.",
				endpointAttributes("activeapps.#")),
			"pauses":      scalingText("What `prometheus` and `http` pause while something works, or while that is unknown: the removal of members (`in`), or any change of the count, even if it is out of bounds (`all`), for example while partitions move. Defaults to `in`."),
			"cpu_percent": scalingNumber("Minimum processor use, in percent of what the role requests, at which a member due for removal counts as working. Defaults to none: it is no sign."),
			"gpu_percent": scalingNumber("The same for its GPUs. Defaults to none: it is no sign."),
		}),
		"at_least": optionalObject("A minimum count read from a source, such as the number of replicas of the data. Set exactly one attribute. No member is removed below this count, whatever else asks for that, including `max` and `member_hours_per_day`, "+
			"and none while the count is unknown. If there are fewer members, some are added, up to `max`, as if a metric had asked for them. Fractions are rounded up.", map[string]schema.Attribute{
			"prometheus": optionalObject("Result of a Prometheus query.", prometheusSourceAttributes("PromQL query that returns the count, such as `max(kafka_topic_replication_factor)`.")),
			"http":       optionalObject("A number in the JSON response of an address.", endpointAttributes("replicas")),
		}),
		"remove": scalingText(fmt.Sprintf("Which members are removed first: `%s`, those that use the least of the processors (`%s`), or those whose hosts use the most (`%s`). The last two are for interchangeable members (workers of `spark` and `ray`), unless the engine distributes them by itself, as `swarm` does those without GPUs. Defaults to `%[1]s`.",
			domain.RemoveHighestIndex, domain.RemoveLeastBusy, domain.RemoveMostLoadedHost)),
		"member_hours_per_day": scalingNumber("Maximum member-hours per day (UTC), summed over all members of the role. Once they are used up, the role has its minimum count. 0 sets no limit. Defaults to 0."),
	}
}
