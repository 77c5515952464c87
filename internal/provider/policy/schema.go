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

const resourceDescription = "Has the number of members of a group's role follow what is measured, between a least and a largest one. Bounds and rules are Terraform's, and the count is the policy's: " +
	"it is in no state, and never a difference. A change of the policy takes effect with the apply.\n\n" +
	"The role leaves `replicas` out; `replicas` and a policy for one role are an error, as are two policies. Refer to the group by `group = trainyard_group.name.name`, so that it is planned and created first.\n\n" +
	"The cluster's controller decides every `interval`, also while nobody applies anything. It changes nothing while an apply has the group, while members of it are being replaced, or while a host of theirs is down; it asks for no more members than can be placed; " +
	"and what it has decided is shown by `terraform-provider-trainyard autoscale explain` and the data source `trainyard_scaling_history`.\n\n" +
	"Metrics are read by the controller. What it asks has to answer it without credentials: policies hold none.\n\n" +
	"The guide \"Autoscaling\" says which algorithm fits what, and `trainyard_policy_backtest` tests one with a recorded load before anything runs by it."

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
		"group":   replacingText("Name of the group, by reference: `trainyard_group.spark.name`. Another group means another policy: the old one ends."),
		"role":    replacingText("Name of the role, which leaves `replicas` out. Another role means another policy: the old one ends."),
		"guards": schema.SingleNestedAttribute{
			MarkdownDescription: "What keeps the count from being changed where that would do harm, whatever the metrics ask for.",
			Optional:            true,
			Attributes:          guardAttributes(),
		},
		"hooks": optionalObject("Programs or addresses of yours that are told which members go and came, such as what moves data between them. They may answer that they are at work, and are asked then until they are done, "+
			"also by a controller that is started again: see the guide \"Autoscaling\".", map[string]schema.Attribute{
			"before_removal": optionalObject("Called before members are removed, with their names. They stay if it fails, or takes longer than `timeout`, and it is called again as long as they are to go. "+
				"Interchangeable members that the engine distributes by itself, as `swarm` does, can't be told: the engine chooses which go. Members are then ended within their role's `grace_period`.", lastingHookAttributes()),
			"after_addition": optionalObject("Called once members that were added run, with their names, where the engine does not choose those. If it fails, or takes longer than `timeout`, the history says so, and the members stay. "+
				"While it is at work, no members are removed.", lastingHookAttributes()),
		}),
		"vertical": verticalAttribute(),
		"dry_run": schema.BoolAttribute{
			MarkdownDescription: "Has decisions recorded, with their reasons, and none carried out. Defaults to `false`.",
			Optional:            true,
		},
		"paused": scalingText("What of the policy is paused: `all` leaves the count as it is, even beyond its bounds, `out` keeps members from being added, `in` from being removed, and `none` pauses nothing. Defaults to `none`."),
		"on_destroy": scalingText("What becomes of the count when the policy is destroyed: it stays (`keep`), goes back to what it was before the policy (`restore`), or to the least one (`min`). " +
			"Where that can't be done, it stays, and a warning says why. One in `dry_run` leaves it as it is. Defaults to `keep`."),
		"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout, "It does not cover what the policy decides.", "It covers the change of the count that `on_destroy` asks for."),
	})
	return schema.Schema{MarkdownDescription: resourceDescription, Attributes: attributes}
}

// replacingText is a text that is needed, and of which another value means another resource.
func replacingText(description string) schema.StringAttribute {
	attribute := neededText(description)
	attribute.PlanModifiers = []planmodifier.String{stringplanmodifier.RequiresReplace()}
	return attribute
}

// optionalObject is an object that may be left out.
func optionalObject(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{MarkdownDescription: description, Optional: true, Attributes: attributes}
}

// measuredAttributes are those of a metric that is measured.
func measuredAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"source":      optionalObject("Where the values come from: exactly one of `agent`, `prometheus`, `queue` and `progress`. Algorithms `ratio` and `external` need none.", sourceAttributes()),
		"window":      scalingDuration("Time before now of which the values are, made one by `aggregation`: from `1s` to `10m` for an agent's, and to `1h` for others. Defaults to `" + written(domain.DefaultAgentWindow) + "` for an agent's and for progress, and to the last value alone for others."),
		"aggregation": scalingText("How the values of the window are made one: their mean (`mean`), the largest one (`max`), one that 95 % of them don't exceed (`p95`), or the last one (`last`). Defaults to `mean`."),
		"ready_after": scalingDuration("How long a member runs before its processors count, from `0s` to `1h`, for an agent's `cpus` and `cpu_percent` of each member: starting takes some of them, too, and is no load. " +
			"Until then the member is not ready by this metric, adds nobody, and is taken for idle where others ask for more. Defaults to `window`."),
	}
}

func sourceAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"agent": optionalObject("What the hosts' agents measure of the role's members.", map[string]schema.Attribute{
			"measure": neededText("What of a member: processors that are busy (`cpus`), the same in percent of those that the role requests (`cpu_percent`), resident memory (`memory_mib`), in percent of what the role requests (`memory_percent`), " +
				"how much of the time its GPUs were working (`gpu_percent`), what it uses of their memory (`gpu_memory_mib`), or how much of that is in use by whomever (`gpu_memory_percent`)."),
			"of":     scalingText("Whose: each member's, and the mean of them (`member`), or the sum of all (`total`). Defaults to `member`."),
			"window": misplaced("window"),
		}),
		"prometheus": optionalObject("What a Prometheus answers to a query.", prometheusSourceAttributes("The query, in PromQL, which returns one value, such as `sum(rate(http_requests_total[1m]))`.")),
		"queue": optionalObject("The length of a queue, by exactly one of its attributes.", map[string]schema.Attribute{
			"http": optionalObject("A number in the JSON that an address answers with.", pageAttributes("queue.length")),
			"redis": optionalObject("The length of a list in Redis.", map[string]schema.Attribute{
				"address":  neededText("`<host>:<port>`."),
				"key":      neededText("The list's key. One that is not there is an empty list."),
				"database": scalingWhole("Number of the database. Defaults to 0."),
			}),
			"command": scalingTexts("A program and its arguments that print the length. It is run beside the cluster's controller, and so not with engine `swarm`, whose controller has no programs."),
		}),
		"progress": optionalObject("How fast members get on, in steps a second, by the lines of their logs.", map[string]schema.Attribute{
			"pattern": neededText("A regular expression in the [syntax of Go](https://pkg.go.dev/regexp/syntax). A group named `step` in it is the number of the step, which counts up, as in `step (?P<step>\\d+)`; without one, each line that matches is a step."),
			"role":    scalingText("Whose logs are read. Defaults to the policy's role."),
			"combine": scalingText("How the progress of several members is made one: its sum, where each works on steps of its own (`sum`), or, where all tell of the same steps, its mean, which is known once all of them do (`mean`), or the largest one, of which one member is enough (`max`). Defaults to `sum`."),
			"window":  misplaced("window"),
		}),
	}
}

func prometheusSourceAttributes(query string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"url":   neededText("Its address, `http://` or `https://`, as the controller reaches it. On a Swarm that is in the cluster's own network, where others are reached by the names of their members."),
		"query": neededText(query),
	}
}

// lastingHookAttributes are those of a hook that may be at work for long.
func lastingHookAttributes() map[string]schema.Attribute {
	attributes := HookAttributes()
	attributes["timeout"] = scalingDuration(fmt.Sprintf("How long it may take in all, from `%s` to `%s`. Defaults to `%s`.",
		written(domain.MinHookTimeout), written(domain.MaxScalingHookTimeout), written(domain.DefaultHookTimeout)))
	return attributes
}

// pageAttributes are those of a number in a page.
func pageAttributes(example string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"url":  neededText("An `http://` or `https://` address, which is asked by GET."),
		"path": scalingText("Where the number is, in the syntax of [GJSON](https://github.com/tidwall/gjson/blob/master/SYNTAX.md), such as `" + example + "`. Defaults to the whole answer."),
	}
}

func guardAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"busy": optionalObject("Keeps members from being removed while they work. Any of its signs is enough, and so is one that can't be read. "+
			"Interchangeable members that the engine distributes by itself, as `swarm` does, all stay while one of them works: the engine chooses which go.", map[string]schema.Attribute{
			"prometheus": optionalObject("A query that tells for all members at once.", prometheusSourceAttributes("The query, in PromQL, whose value is not 0 while something works, such as `metrics_master_apps_Value` of Spark.")),
			"http": optionalObject("A page that tells for all members at once, in JSON: a number that is not 0, or `true`, while something works. Spark's master has one: `url = \"http://spark-master-0:8080/json/\"`, `path = \"activeapps.#\"`, the number of applications that run.",
				pageAttributes("activeapps.#")),
			"pauses":      scalingText("What `prometheus` and `http` pause while something works, or while that can't be told: the removal of members (`in`), or any change of the count, even out of its bounds (`all`), such as while partitions move. Defaults to `in`."),
			"cpu_percent": scalingNumber("What a member that is to be removed uses at least, if it works, of the processors that its role requests, in percent. Defaults to none: it is no sign."),
			"gpu_percent": scalingNumber("The same of its GPUs. Defaults to none: it is no sign."),
		}),
		"at_least": optionalObject("A count that a source tells, by exactly one of its attributes, such as the replicas that data has. No member is removed below it, whatever else asks for that, `max` and `member_hours_per_day` included, "+
			"nor any while it can't be told. Where there are fewer, members are added as if a metric had asked for them, up to `max`. A fraction is rounded up.", map[string]schema.Attribute{
			"prometheus": optionalObject("What a Prometheus answers to a query.", prometheusSourceAttributes("The query, in PromQL, which returns the count, such as `max(kafka_topic_replication_factor)`.")),
			"http":       optionalObject("A number in the JSON that an address answers with.", pageAttributes("replicas")),
		}),
		"remove": scalingText(fmt.Sprintf("Which members are removed first: `%s`, or, of roles of interchangeable members (workers of `spark` and `ray`) that the engine does not distribute by itself, as `swarm` does those without GPUs, those that use the least of the processors (`%s`), or whose hosts use the most (`%s`). Defaults to `%[1]s`.",
			domain.RemoveHighestIndex, domain.RemoveLeastBusy, domain.RemoveMostLoadedHost)),
		"member_hours_per_day": scalingNumber("What the role may use in a day (UTC), in hours of all its members together. From then on it has its least count. 0 sets no bound. Defaults to 0."),
	}
}
