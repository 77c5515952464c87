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

// The attributes of policies are the same wherever one is declared: those of a resource, of which [ReadAttributes]
// makes those of a data source. They are optional or required, never computed, and have no defaults but those of the
// domain.

// scalingText, scalingWhole, scalingNumber and scalingDuration are attributes of a policy that may be left out.
func scalingText(description string) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description, Optional: true}
}

func scalingWhole(description string) schema.Int64Attribute {
	return schema.Int64Attribute{MarkdownDescription: description, Optional: true}
}

// scalingCount is a number of 1 or more. It has to be refused here: in the domain, 0 is one that is left out.
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
	return schema.ListAttribute{MarkdownDescription: description, ElementType: types.StringType, Optional: true, Validators: []validator.List{listvalidator.NoNullValues()}}
}

func scalingDuration(description string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Validators:          []validator.String{resourcekit.IsDuration()},
		PlanModifiers:       []planmodifier.String{resourcekit.SameDuration()},
	}
}

// neededWhole, neededNumber, neededText and neededDuration are those that may not.
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

// ScalingAttributes are the attributes of a policy but for those that say whose it is. Metrics have more of them: what
// they measure, and the like.
func ScalingAttributes(more map[string]schema.Attribute) map[string]schema.Attribute {
	metric := map[string]schema.Attribute{
		"algorithm": schema.SingleNestedAttribute{
			MarkdownDescription: "The algorithm that makes a count of the metric: exactly one. Left out, the metric is observed: it is measured and shown in the history, in `explain` and to Prometheus, and an `external` algorithm is told of it, " +
				"but it asks for no count, and nothing waits for it where it is missing. One metric with an algorithm, or a schedule, there has to be.",
			Optional:   true,
			Attributes: algorithmAttributes(),
			Validators: []validator.Object{namesAlgorithm{}},
		},
		"stale_after": scalingDuration("A value older than this is as good as missing. Defaults to `" + written(domain.DefaultStaleAfter) + "`."),
		"on_missing": scalingText("What the metric asks for where it has no value, which is never taken for 0: nothing, with no scaling in by other metrics either (`hold`), " +
			"the least count (`min`), the largest one (`max`), or what it asks for at `missing_value` (`value`). Defaults to `hold`."),
		"missing_value": scalingNumber("The value in the place of one that is missing, for `on_missing = \"value\"`, where it is needed."),
		"forecast": schema.SingleNestedAttribute{
			MarkdownDescription: "Has the algorithm work with the value that is expected some time ahead, if that is more than the present one. Defaults to none: it works with the present value.",
			Optional:            true,
			Attributes: map[string]schema.Attribute{
				"lead":   scalingDuration("How far ahead, such as the time that a member takes to start. Defaults to just that: how long members have taken so far, and in a backtest `model.startup`."),
				"season": scalingDuration("Length of what repeats, such as `24h`, 10 times the lead or more. Defaults to none: the trend alone is followed."),
			},
		},
	}
	maps.Copy(metric, more)
	return map[string]schema.Attribute{
		"min":      neededWhole("The least number of members."),
		"max":      neededWhole("The largest number of members."),
		"initial":  scalingWhole("Number of members to begin with, as soon as that can be had; then the metrics decide. Defaults to the count that the role has, and in a backtest to `min`."),
		"interval": scalingDuration("Time between two decisions, from `1s` to `1h`. Defaults to `" + written(domain.DefaultScalingInterval) + "`."),
		"metrics": schema.MapNestedAttribute{
			MarkdownDescription: "What the count follows, by names that you choose. The largest count that one of them, or of `schedules`, asks for is taken.",
			Optional:            true,
			Validators:          []validator.Map{mapvalidator.NoNullValues()},
			NestedObject:        schema.NestedAttributeObject{Attributes: metric},
		},
		"schedules": schema.MapNestedAttribute{
			MarkdownDescription: "Counts for certain times, by names that you choose. More is possible where a metric asks for it.",
			Optional:            true,
			Validators:          []validator.Map{mapvalidator.NoNullValues()},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"start":     neededText("When it begins, in the syntax of cron with five fields, such as `0 8 * * 1-5`."),
				"end":       neededText("When it ends, in the same syntax."),
				"time_zone": scalingText("Time zone of both, by its name in the IANA database, such as `Europe/Warsaw`. Defaults to UTC."),
				"count":     neededWhole("The least number of members in between, from `min` to `max`."),
			}},
		},
		"scale_out": behaviourAttribute("How fast members are added.", written(domain.DefaultStabilisationOut), "4 members or 100 %, whichever is more, every 15 seconds"),
		"scale_in":  behaviourAttribute("How fast members are removed.", written(domain.DefaultStabilisationIn), "none: all that are too many go at once"),
	}
}

// algorithmAttributes are the algorithms that a metric may have.
func algorithmAttributes() map[string]schema.Attribute {
	algorithm := func(description string, attributes map[string]schema.Attribute) schema.Attribute {
		return schema.SingleNestedAttribute{MarkdownDescription: description, Optional: true, Attributes: attributes}
	}
	return map[string]schema.Attribute{
		"target": algorithm("Keeps the metric at a value, as the Horizontal Pod Autoscaler of Kubernetes does.", map[string]schema.Attribute{
			"value": neededNumber("What the metric is kept at, above 0, in the metric's own unit."),
			"per": scalingText("What is compared with it: the mean of what the members have, such as their utilisation (`mean`), " +
				"or a value of the whole, such as requests a second, divided by the number of members (`total`). Defaults to `mean`."),
		}),
		"heat": algorithm("Scales once the metric has been beyond a threshold for some decisions in a row: each of them heats or cools.", map[string]schema.Attribute{
			"lower":      neededNumber("The threshold at which, and below which, it cools."),
			"upper":      neededNumber("The threshold at which, and above which, it heats."),
			"target":     neededNumber("The value that the new count is made for, above 0."),
			"recurrence": scalingCount("Number of decisions in a row that it takes. Defaults to 3."),
		}),
		"threshold": algorithm("Adds or removes members while the metric is beyond a threshold.", map[string]schema.Attribute{
			"lower":            scalingNumber("The threshold below which members are removed. Defaults to none: they never are."),
			"upper":            scalingNumber("The threshold above which members are added. Defaults to none: they never are."),
			"samples":          scalingCount("Number of decisions in a row that have to find the metric there. Defaults to 1."),
			"step_out":         scalingCount("Number of members that are added at a time. Defaults to 1."),
			"step_in":          scalingCount("Number of members that are removed at a time. Defaults to 1."),
			"step_out_percent": scalingNumber("How many are added at a time in percent of the count, rounded up, where that is more than `step_out`. Defaults to none."),
			"step_in_percent":  scalingNumber("How many are removed at a time in percent of the count, rounded up, where that is more than `step_in`. Defaults to none."),
		}),
		"queue": algorithm("Has members in proportion to a queue.", map[string]schema.Attribute{
			"per_member": neededNumber("How much of the queue is one member's, above 0."),
			"cool_down":  scalingDuration("How long the queue has to have been empty before the last member goes. Defaults to `" + written(domain.DefaultQueueCoolDown) + "`."),
		}),
		"marginal_gain": algorithm("Adds members as long as each brings progress.", map[string]schema.Attribute{
			"threshold":   neededNumber("The least progress that one more member has to bring, as a share of what a member brought so far: `0.1` is a tenth."),
			"settle":      scalingDuration("How long progress is measured before the next step, and after members have come to run. Defaults to `" + written(domain.DefaultGainSettle) + "`."),
			"retry_after": scalingDuration("Time after which another member is tried again, once one brought too little. Defaults to none: never."),
		}),
		"risk": algorithm("Keeps the share of time with too few members at what you allow, with as few members as that takes. It learns what can be foreseen of the load, and how far off that is.", map[string]schema.Attribute{
			"percent":  neededNumber(fmt.Sprintf("The share of time that may have too few members, in percent: %g to %d. What the policy's bounds and rates cause counts, too.", domain.MinRiskPercent, domain.MaxRiskPercent)),
			"capacity": scalingNumber(fmt.Sprintf("How much of the metric one member carries, above 0, in the metric's own unit. Defaults to %d, for a utilisation in percent; `per = \"total\"` needs it.", domain.DefaultRiskCapacity)),
			"per": scalingText("Whether the metric is the mean of what the members have, such as their utilisation (`mean`), " +
				"or a value of the whole, such as requests a second (`total`). Defaults to `mean`."),
		}),
		"external": algorithm("Has a program of yours decide, such as one that has learnt to. It is given what the policy sees as JSON, and answers with a count or a direction, see the guide \"Autoscaling\". "+
			"Any failure is no answer, and changes nothing.", HookAttributes()),
		"idle_room": algorithm("Has as many members as there is room for that nobody else uses, up to `max`. Nothing is measured, so that the metric has no `source`. For a group or sweep with a higher `priority` they go again, down to `min`.", map[string]schema.Attribute{
			"keep_free": scalingWhole("For how many more members room is left free when some are added, such as for groups that are to start at once. Defaults to 0."),
		}),
		"learned": algorithm("Asks a model that `terraform-provider-trainyard autoscale train` has trained what one member more, as many, and one fewer are worth, and takes the best of these: see the guide \"Autoscaling\". "+
			"It never adds or removes more than one member a decision.", map[string]schema.Attribute{
			"model":    neededText("The model itself: `file(\"dqn.json\")`. It is kept apart from the policy, and no later plan reads it."),
			"capacity": scalingNumber(fmt.Sprintf("How much of the metric one member carries, above 0, in the metric's own unit. Defaults to %d, for a utilisation in percent; `per = \"total\"` needs it.", domain.DefaultLearnedCapacity)),
			"per": scalingText("Whether the metric is the mean of what the members have, such as their utilisation (`mean`), " +
				"or a value of the whole, such as records a second (`total`). Defaults to `mean`."),
			"latency_bound": scalingNumber("The latency that is allowed, above 0, in the unit of the metric that `p99` names, which needs it. In a backtest that is in seconds."),
			"lag_capacity":  scalingNumber("How much lag one member works off in a second, above 0, in the unit of the metric that `lag_growth` names, which needs it. Defaults to `capacity` where `per` is `total`."),
			"observes": schema.MapAttribute{
				MarkdownDescription: "Other metrics of the policy, by the features of the model that are made of them: `{ cpu = \"processors\" }`, where `processors` is in `metrics`. A model takes some of " + observedFeatures() + ", and each that it takes has to be here, and no other. " +
					"`reassigning` may be left out where the policy has hooks. Where one has no value, the count stays.",
				ElementType: types.StringType,
				Optional:    true,
				Validators:  []validator.Map{mapvalidator.NoNullValues()},
			},
		}),
		"ratio": algorithm("Keeps the role in proportion to another one of its group.", map[string]schema.Attribute{
			"role": neededText("Name of the other role."),
			"per":  neededNumber("How many of the other role's members there are for one of this role, above 0."),
		}),
	}
}

// observedFeatures lists the features of models that are made of metrics.
func observedFeatures() string {
	var names []string
	for _, f := range qmodel.Features {
		if f.Observed {
			names = append(names, "`"+f.Name+"`")
		}
	}
	return domain.Enumerate(names)
}

// HookAttributes are those of something of the user's that is asked or told.
func HookAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"url":     scalingText("An `http://` or `https://` address that is sent the JSON by POST, instead of `command`."),
		"command": scalingTexts("A program and its arguments that find the JSON on their standard input, instead of `url`. It is run beside the cluster's controller, and so not with engine `swarm`, whose controller has no programs."),
		"timeout": scalingDuration("How long it may take. Defaults to `" + written(domain.DefaultHookTimeout) + "`."),
	}
}

// behaviourAttribute says how fast a role is scaled in one direction.
func behaviourAttribute(description, window, rates string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"stabilisation_window": scalingDuration("Time, `1h` at most, over which the most careful count is taken that was asked for. Defaults to `" + window + "`."),
			"tolerance":            scalingNumber(fmt.Sprintf("By which share a metric may miss its target without any change, from 0 to below 1. Defaults to %v.", domain.DefaultTolerance)),
			"rates": schema.ListNestedAttribute{
				MarkdownDescription: "Bounds of the change in a period. Defaults to " + rates + ".",
				Optional:            true,
				Validators:          []validator.List{listvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"count":   scalingWhole("Number of members, instead of `percent`."),
					"percent": scalingNumber("How many in percent of the members at the beginning of the period, instead of `count`."),
					"period":  neededDuration("The period, from `1s` to `30m`."),
				}},
			},
			"select":   scalingText("Which of several rates counts: the one that allows the largest change (`max`), the smallest one (`min`), or none, with no change at all (`disabled`). Defaults to `max`."),
			"cooldown": scalingDuration("How long after a change of the count, in either direction, there is none in this one. Defaults to none."),
			"max_step": scalingWhole(fmt.Sprintf("The largest change of one decision, %d at most; 0 sets no bound. Defaults to 0.", domain.MaxReplicas)),
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
		return datasource.StringAttribute{MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional, Validators: a.Validators}
	case schema.Int64Attribute:
		return datasource.Int64Attribute{MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional, Validators: a.Validators}
	case schema.Float64Attribute:
		return datasource.Float64Attribute{MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional, Validators: a.Validators}
	case schema.SingleNestedAttribute:
		return datasource.SingleNestedAttribute{
			MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional, Validators: a.Validators, Attributes: ReadAttributes(a.Attributes),
		}
	case schema.ListAttribute:
		return datasource.ListAttribute{MarkdownDescription: a.MarkdownDescription, ElementType: a.ElementType, Required: a.Required, Optional: a.Optional, Validators: a.Validators}
	case schema.MapAttribute:
		return datasource.MapAttribute{MarkdownDescription: a.MarkdownDescription, ElementType: a.ElementType, Required: a.Required, Optional: a.Optional, Validators: a.Validators}
	case schema.ListNestedAttribute:
		return datasource.ListNestedAttribute{
			MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional, Validators: a.Validators,
			NestedObject: datasource.NestedAttributeObject{Attributes: ReadAttributes(a.NestedObject.Attributes)},
		}
	case schema.MapNestedAttribute:
		return datasource.MapNestedAttribute{
			MarkdownDescription: a.MarkdownDescription, Required: a.Required, Optional: a.Optional, Validators: a.Validators,
			NestedObject: datasource.NestedAttributeObject{Attributes: ReadAttributes(a.NestedObject.Attributes)},
		}
	}
	panic(fmt.Sprintf("no policy has a %T yet", attribute))
}
