package policy

import (
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// The attributes of policies are the same wherever a policy is declared: [ReadAttributes] turns those of the
// resource into those of a data source. They are optional or required, never computed, and have no defaults
// except those of the domain.

// scalingText, scalingWhole, scalingNumber and scalingDuration are optional attributes of a policy.
func scalingText(description string) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description, Optional: true}
}

func scalingWhole(description string) schema.Int64Attribute {
	return schema.Int64Attribute{MarkdownDescription: description, Optional: true}
}

// scalingCount is a number of 1 or more. 0 has to be refused here, as it means unset in the domain.
func scalingCount(description string) schema.Int64Attribute {
	attribute := scalingWhole(description)
	attribute.Validators = []validator.Int64{int64validator.AtLeast(1)}
	return attribute
}

func scalingNumber(description string) schema.Float64Attribute {
	return schema.Float64Attribute{MarkdownDescription: description, Optional: true}
}

// scalingTexts is a list, such as a program and its arguments.
func scalingTexts(description string) schema.ListAttribute {
	return schema.ListAttribute{
		MarkdownDescription: description, ElementType: types.StringType, Optional: true,
		Validators: []validator.List{listvalidator.NoNullValues()},
	}
}

func scalingDuration(description string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Validators:          []validator.String{resourcekit.IsDuration()},
		PlanModifiers:       []planmodifier.String{resourcekit.SameDuration()},
	}
}

// neededWhole, neededNumber, neededText and neededDuration are required attributes of a policy.
func neededWhole(description string) schema.Int64Attribute {
	return schema.Int64Attribute{MarkdownDescription: description, Required: true}
}

func neededNumber(description string) schema.Float64Attribute {
	return schema.Float64Attribute{MarkdownDescription: description, Required: true}
}

func neededText(description string) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description, Required: true}
}

func neededDuration(description string) schema.StringAttribute {
	attribute := scalingDuration(description)
	attribute.Optional, attribute.Required = false, true
	return attribute
}

// ScalingAttributes are the attributes of a policy except those that identify it. More are additional attributes of
// metrics, such as their source.
func ScalingAttributes(more map[string]schema.Attribute) map[string]schema.Attribute {
	metric := map[string]schema.Attribute{
		"algorithm": schema.SingleNestedAttribute{
			MarkdownDescription: "Algorithm that turns the metric into a count; exactly one. Omit it to only observe " +
				"the metric: it is measured, shown in the history and in `explain`, exported to Prometheus and " +
				"passed to an `external` algorithm, " +
				"but it asks for no count, and a missing value holds nothing up. At least one metric needs an " +
				"algorithm, unless there is a schedule or `vertical`.",
			Optional:   true,
			Attributes: algorithmAttributes(),
			Validators: []validator.Object{namesAlgorithm{}},
		},
		"stale_after": scalingDuration("A value older than this counts as missing; `1s` or more. Defaults to `" +
			written(domain.DefaultStaleAfter) + "`."),
		"on_missing": scalingText("What the metric asks for when it has no value; a missing value is never taken as " +
			"0. `hold` asks for nothing and also prevents scaling in by other metrics, " +
			"`min` asks for the minimum count, `max` for the maximum, and `value` for what it asks for at " +
			"`missing_value`. Defaults to `hold`."),
		"missing_value": scalingNumber("Value used in place of a missing one, 0 or more. Required with `on_missing = " +
			"\"value\"`, not allowed otherwise."),
		"forecast": schema.SingleNestedAttribute{
			MarkdownDescription: "Makes the algorithm use the value forecast for some time ahead, if it is higher " +
				"than the current one. Defaults to none: the current value is used.",
			Optional: true,
			Attributes: map[string]schema.Attribute{
				"lead": scalingDuration("How far ahead to forecast, such as the time that a member takes to start. " +
					"Defaults to that time: how long members have taken so far, or `model.startup` in a backtest."),
				"season": scalingDuration("Length of the repeating pattern, such as `24h`, at least 10 times the " +
					"lead. Defaults to none: only the trend is followed."),
			},
		},
	}
	maps.Copy(metric, more)
	return map[string]schema.Attribute{
		"min": neededWhole("Minimum number of members, 0 or more. With 0, something has to ask for members while " +
			"there are none: a schedule, `guards.at_least`, or a metric that is not measured on the role's own " +
			"members."),
		"max": neededWhole("Maximum number of members, from `min` to 10,000."),
		"initial": scalingWhole("Initial number of members, from `min` to `max`, set as soon as possible; after " +
			"that, the metrics decide. Defaults to the current count of the role, and to `min` in a backtest."),
		"interval": scalingDuration(
			"Time between decisions, from `1s` to `1h`. Defaults to `" + written(domain.DefaultScalingInterval) + "`.",
		),
		"metrics": schema.MapNestedAttribute{
			MarkdownDescription: "Metrics that the count follows, by arbitrary names. The largest count that any " +
				"metric or schedule asks for is used.",
			Optional:     true,
			Validators:   []validator.Map{mapvalidator.NoNullValues()},
			NestedObject: schema.NestedAttributeObject{Attributes: metric},
		},
		"schedules": schema.MapNestedAttribute{
			MarkdownDescription: "Minimum counts for certain times, by arbitrary names that no metric has. The " +
				"count is higher if a metric asks for more.",
			Optional:   true,
			Validators: []validator.Map{mapvalidator.NoNullValues()},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"start":     neededText("Start time, as a cron expression with five fields, such as `0 8 * * 1-5`."),
				"end":       neededText("End time, in the same syntax."),
				"time_zone": scalingText("Time zone of both, by IANA name, such as `Europe/Warsaw`. Defaults to UTC."),
				"count":     neededWhole("Minimum number of members between `start` and `end`: from `min` to `max`."),
			}},
		},
		"scale_out": behaviourAttribute("How fast members are added.", written(domain.DefaultStabilisationOut),
			"4 members or 100 %, whichever is more, every 15 seconds"),
		"scale_in": behaviourAttribute("How fast members are removed.", written(domain.DefaultStabilisationIn),
			"none: all surplus members are removed at once"),
	}
}

// algorithmAttributes are the algorithms of a metric.
func algorithmAttributes() map[string]schema.Attribute {
	algorithm := func(description string, attributes map[string]schema.Attribute) schema.Attribute {
		return schema.SingleNestedAttribute{MarkdownDescription: description, Optional: true, Attributes: attributes}
	}
	return map[string]schema.Attribute{
		"target": algorithm("Keeps the metric at a value, like the Kubernetes Horizontal Pod Autoscaler.",
			map[string]schema.Attribute{
				"value": neededNumber("Value to keep the metric at, above 0, in the metric's own unit."),
				"per": scalingText("What is compared with `value`: the mean of a metric that members have, such as " +
					"their utilisation (`mean`), " +
					"or a value for the whole role, such as requests per second, divided by the number of members " +
					"(`total`). Defaults to `mean`."),
			}),
		"heat": algorithm("Scales once the metric has been beyond a threshold for several consecutive decisions: "+
			"each of them heats or cools.", map[string]schema.Attribute{
			"lower":      neededNumber("Threshold at or below which a decision cools."),
			"upper":      neededNumber("Threshold at or above which a decision heats."),
			"target":     neededNumber("Value that the new count aims for, from `lower` to `upper`, above 0."),
			"recurrence": scalingCount("Number of consecutive decisions needed to scale, 1 or more. Defaults to 3."),
		}),
		"threshold": algorithm("Adds or removes members while the metric is beyond a threshold. Set `lower`, "+
			"`upper` or both.", map[string]schema.Attribute{
			"lower": scalingNumber(
				"Threshold below which members are removed. Defaults to none: members are never removed.",
			),
			"upper": scalingNumber(
				"Threshold above which members are added. Defaults to none: members are never added.",
			),
			"samples": scalingCount(
				"Number of consecutive decisions that must find the metric beyond the threshold, 1 or more. " +
					"Defaults to 1.",
			),
			"step_out": scalingCount("Number of members added at a time. Defaults to 1."),
			"step_in":  scalingCount("Number of members removed at a time. Defaults to 1."),
			"step_out_percent": scalingNumber("Members added at a time, in percent of the count, rounded up. Used if " +
				"that is more than `step_out`. Defaults to none."),
			"step_in_percent": scalingNumber("Members removed at a time, in percent of the count, 0 to 100, rounded " +
				"up. Used if that is more than `step_in`. Defaults to none."),
		}),
		"queue": algorithm("Keeps the count in proportion to a queue.", map[string]schema.Attribute{
			"per_member": neededNumber("Queue length per member, above 0."),
			"cool_down": scalingDuration("How long the queue must have been empty before the last member is " +
				"removed. Defaults to `" + written(domain.DefaultQueueCoolDown) + "`."),
		}),
		"marginal_gain": algorithm("Adds members as long as each one increases progress.", map[string]schema.Attribute{
			"threshold": neededNumber("Minimum gain in progress from one more member, as a share of the progress " +
				"per member so far, from 0 to 1: `0.1` is a tenth."),
			"settle": scalingDuration("How long progress is measured before the next step, and after members " +
				"have started. Defaults to `" + written(domain.DefaultGainSettle) + "`."),
			"retry_after": scalingDuration("Time after which one more member is tried again, if the last one gained " +
				"too little. Defaults to none: never."),
		}),
		"risk": algorithm("Keeps the share of time with too few members at what you allow, with as few members as "+
			"possible. It learns to forecast the load, and how far off its forecasts are.", map[string]schema.Attribute{
			"percent": neededNumber(fmt.Sprintf("Share of time that may have too few members, in percent: %g to %d. "+
				"Shortages caused by the policy's bounds and rates count, too.", domain.MinRiskPercent,
				domain.MaxRiskPercent)),
			"capacity": scalingNumber(fmt.Sprintf("How much of the metric one member carries, above 0, in the "+
				"metric's own unit. Defaults to %d, for a utilisation in percent. Required with `per = \"total\"`.",
				domain.DefaultRiskCapacity)),
			"per": scalingText("Whether the metric is the mean over the members, such as their utilisation (`mean`), " +
				"or a value for the whole role, such as requests per second (`total`). Defaults to `mean`."),
		}),
		"external": algorithm("Lets your own program decide, such as a trained model. It receives what the policy "+
			"sees as JSON and answers with a count or a direction: see the guide \"Autoscaling\". "+
			"A failure of any kind counts as no answer and changes nothing.", HookAttributes()),
		"idle_room": algorithm("Uses the room that nothing else uses, with up to `max` members. Nothing is measured, "+
			"so the metric has no `source`. The members give way to groups and sweeps with a higher `priority`, "+
			"down to `min`.", map[string]schema.Attribute{
			"keep_free": scalingWhole("Number of further members for which room is left free when members are added, " +
				"for example for groups that must start at once. Defaults to 0."),
		}),
		"learned": algorithm("Asks a model trained by `terraform-provider-trainyard autoscale train` what adding one "+
			"member, keeping the count and removing one are worth, and takes the best of these: see the guide "+
			"\"Autoscaling\". "+
			"It never adds or removes more than one member per decision.", map[string]schema.Attribute{
			"model": neededText("The model itself: `file(\"dqn.json\")`. It is stored apart from the policy, and " +
				"later plans do not read it."),
			"capacity": scalingNumber(fmt.Sprintf("How much of the metric one member carries, above 0, in the "+
				"metric's own unit. Defaults to %d, for a utilisation in percent. Required with `per = \"total\"`.",
				domain.DefaultLearnedCapacity)),
			"per": scalingText("Whether the metric is the mean over the members, such as their utilisation (`mean`), " +
				"or a value for the whole role, such as records per second (`total`). Defaults to `mean`."),
			"latency_bound": scalingNumber("Allowed latency, above 0, in the unit of the metric that `p99` names. " +
				"Required with `p99`. In a backtest the unit is seconds."),
			"lag_capacity": scalingNumber("How much lag one member works off per second, above 0, in the unit of the " +
				"metric that `lag_growth` names. Required with `lag_growth`, unless `per` is `total`: it then " +
				"defaults to `capacity`."),
			"observes": schema.MapAttribute{
				MarkdownDescription: "Other metrics of the policy, by the model feature that they provide: `{ p99 = " +
					"\"latency\" }`, where `latency` is in `metrics`. A model takes some of " + observedFeatures() +
					". List exactly those that it takes. " +
					"`reassigning` may be omitted if the policy has hooks. If one of these metrics has no value, the " +
					"count stays.",
				ElementType: types.StringType,
				Optional:    true,
				Validators:  []validator.Map{mapvalidator.NoNullValues()},
			},
		}),
		"ratio": algorithm("Keeps the role in proportion to another role of its group.", map[string]schema.Attribute{
			"role": neededText("Name of the other role."),
			"per":  neededNumber("Number of members of the other role for each member of this one, above 0."),
		}),
	}
}

// observedFeatures lists the features of models that are observed metrics.
func observedFeatures() string {
	var names []string
	for _, f := range qmodel.Features {
		if f.Observed {
			names = append(names, "`"+f.Name+"`")
		}
	}
	return domain.Enumerate(names)
}

// HookAttributes are the attributes of a URL or program of the user's.
func HookAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"url": scalingText("`http://` or `https://` URL that receives the JSON by POST. Set this or `command`."),
		"command": scalingTexts("Program and arguments. The program receives the JSON on standard input. Set this or " +
			"`url`. It runs beside the cluster's controller, so it is not available on `swarm`, where the " +
			"controller's container has no programs."),
		"timeout": scalingDuration(fmt.Sprintf("Time limit, from `%s` to `%s`. Defaults to `%s`.",
			written(domain.MinHookTimeout), written(domain.MaxHookTimeout), written(domain.DefaultHookTimeout))),
	}
}

// behaviourAttribute is how fast a role is scaled in one direction.
func behaviourAttribute(description, window, rates string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"stabilisation_window": scalingDuration(
				"Time window, at most `1h`, over which the most conservative proposed count is used. Defaults to `" +
					window + "`.",
			),
			"tolerance": scalingNumber(fmt.Sprintf("Share by which a metric may miss its target without causing a "+
				"change, from 0 to below 1. Defaults to %v.", domain.DefaultTolerance)),
			"rates": schema.ListNestedAttribute{
				MarkdownDescription: "Limits on the change of the count within a period. Defaults to " + rates + ".",
				Optional:            true,
				Validators:          []validator.List{listvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"count": scalingWhole("Number of members. Set this or `percent`."),
					"percent": scalingNumber(
						"Percentage of the members at the beginning of the period, rounded up; 1 member if there " +
							"were none. Set this or `count`.",
					),
					"period": neededDuration("The period, from `1s` to `30m`."),
				}},
			},
			"select": scalingText("Which of several rates applies: the one that allows the largest change (`max`), " +
				"the smallest (`min`), or none, so that nothing changes in this direction (`disabled`). " +
				"Defaults to `max`."),
			"cooldown": scalingDuration("Time after a change of the count, in either direction, in which it does not " +
				"change in this direction. Defaults to none."),
			"max_step": scalingWhole(fmt.Sprintf("Maximum change per decision, at most %d. 0, the default, "+
				"means no limit.",
				domain.MaxReplicas)),
		},
	}
}

// ReadAttributes returns attributes of a resource as those of a data source.
func ReadAttributes(attributes map[string]schema.Attribute) map[string]datasource.Attribute {
	read := make(map[string]datasource.Attribute, len(attributes))
	for name, attribute := range attributes {
		read[name] = readAttribute(attribute)
	}
	return read
}

func readAttribute(attribute schema.Attribute) datasource.Attribute {
	switch a := attribute.(type) {
	case schema.StringAttribute:
		return datasource.StringAttribute{
			MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional,
			Validators: a.Validators,
		}
	case schema.Int64Attribute:
		return datasource.Int64Attribute{
			MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional,
			Validators: a.Validators,
		}
	case schema.Float64Attribute:
		return datasource.Float64Attribute{
			MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional,
			Validators: a.Validators,
		}
	case schema.SingleNestedAttribute:
		return datasource.SingleNestedAttribute{
			MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional,
			Validators: a.Validators, Attributes: ReadAttributes(a.Attributes),
		}
	case schema.ListAttribute:
		return datasource.ListAttribute{
			MarkdownDescription: a.MarkdownDescription, ElementType: a.ElementType, Required: a.Required,
			Optional: a.Optional, Validators: a.Validators,
		}
	case schema.MapAttribute:
		return datasource.MapAttribute{
			MarkdownDescription: a.MarkdownDescription, ElementType: a.ElementType, Required: a.Required,
			Optional: a.Optional, Validators: a.Validators,
		}
	case schema.ListNestedAttribute:
		return datasource.ListNestedAttribute{
			MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional,
			Validators:   a.Validators,
			NestedObject: datasource.NestedAttributeObject{Attributes: ReadAttributes(a.NestedObject.Attributes)},
		}
	case schema.MapNestedAttribute:
		return datasource.MapNestedAttribute{
			MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional,
			Validators:   a.Validators,
			NestedObject: datasource.NestedAttributeObject{Attributes: ReadAttributes(a.NestedObject.Attributes)},
		}
	}
	panic(fmt.Sprintf("no policy has a %T yet", attribute))
}
