package backtest

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

const dataSourceDescription = "What an autoscaling policy would have made of a load: how many members there would have been, when that would have changed and why, and for how long " +
	"they would have been too few. It is computed when Terraform plans, and touches no cluster. `trainyard_autoscaling_policy` runs one.\n\n" +
	"Members are taken to be alike: each carries `model.capacity`, from `model.startup` after the decision on. What there is no model of can't be followed: `marginal_gain`, which needs the " +
	"progress of a training, `ratio`, which needs another role, and `external`, which needs a program of yours.\n\n" +
	"What the data source takes is in the state, as with any other: a trace of a year of minutes makes it some megabytes larger."

// Schema is the schema of trainyard_policy_backtest.
func Schema() schema.Schema {
	whole := func(description string) schema.Attribute {
		return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
	}
	number := func(description string) schema.Attribute {
		return schema.Float64Attribute{MarkdownDescription: description, Computed: true}
	}
	return schema.Schema{
		MarkdownDescription: dataSourceDescription,
		Attributes: map[string]schema.Attribute{
			"policy": schema.SingleNestedAttribute{
				MarkdownDescription: "The policy.",
				Required:            true,
				Attributes: policy.ReadAttributes(policy.ScalingAttributes(map[string]resource.Attribute{
					"signal": resource.StringAttribute{
						MarkdownDescription: fmt.Sprintf("What the metric shows of the load: the percentage of the capacity of the members at work that is in use, 100 at most (`%s`), the load itself (`%s`), "+
							"what has come and was not done yet, in units of the load times a second (`%s`), how many seconds that waits (`%s`), 1 while members start (`%s`), "+
							"or by which share the members at work carry more than the mean of all (`%s`). "+
							"Defaults to what suits the algorithm: `%[3]s` for `queue`, `%[2]s` for a `target` or a `learned` that is `per = \"total\"`, what the feature of a metric is made of that `learned` observes, "+
							"and `%[1]s` for all others.",
							autoscale.SignalUtilisation, autoscale.SignalLoad, autoscale.SignalQueue, autoscale.SignalLatency, autoscale.SignalChanging, autoscale.SignalSkew),
						Optional: true,
					},
				})),
			},
			"trace": schema.SingleNestedAttribute{
				MarkdownDescription: "The load over time, by exactly one of its attributes.",
				Required:            true,
				Attributes: map[string]schema.Attribute{
					"csv": schema.StringAttribute{
						MarkdownDescription: "A table as text, such as `file(\"load.csv\")`, of two columns with or without a line of their names: the time, in RFC 3339 or in seconds since 1970, at equal distances, and the load. " +
							"A line without a load is one that metrics have lost: the load goes on as before.",
						Optional: true,
					},
					"prometheus": schema.SingleNestedAttribute{
						MarkdownDescription: "What a Prometheus remembers. How to log in to it is said in the provider's block `prometheus`. Moments at which it knows nothing are ones that metrics have lost.",
						Optional:            true,
						Attributes: map[string]schema.Attribute{
							"url": schema.StringAttribute{
								MarkdownDescription: "Its address, `http://` or `https://`, with the path that it is below, where there is one. Its certificate is verified, always.",
								Required:            true,
								Validators:          []validator.String{resourcekit.IsPrometheusURL()},
							},
							"query": schema.StringAttribute{
								MarkdownDescription: "The query, which returns one series, such as `sum(rate(http_requests_total[5m]))`.",
								Required:            true,
								Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
							},
							"start": schema.StringAttribute{
								MarkdownDescription: "Time of the first value, in RFC 3339. A time that stands still, and not one that is counted back from now, has each plan read the same.",
								Required:            true,
							},
							"end": schema.StringAttribute{
								MarkdownDescription: "Time up to which there are values, in RFC 3339.",
								Required:            true,
							},
							"step": schema.StringAttribute{
								MarkdownDescription: "Time between two values, as a duration such as `1m`.",
								Required:            true,
							},
							"timeout": schema.StringAttribute{
								MarkdownDescription: "How long to wait for all its answers together. Defaults to `" + resourcekit.DefaultPrometheusTimeout.String() + "`.",
								Optional:            true,
								Validators:          []validator.String{resourcekit.IsTimeout()},
							},
						},
					},
					"load": schema.SingleNestedAttribute{
						MarkdownDescription: "Values at equal distances in time.",
						Optional:            true,
						Attributes: map[string]schema.Attribute{
							"start": schema.StringAttribute{
								MarkdownDescription: "Time of the first value, in RFC 3339, such as `2026-01-31T12:00:00Z`.",
								Required:            true,
							},
							"step": schema.StringAttribute{
								MarkdownDescription: "Time between two values, as a duration such as `1m`.",
								Required:            true,
							},
							"values": schema.ListAttribute{
								MarkdownDescription: "The load, in any unit: requests or samples a second, processors. Each value holds until the next one.",
								ElementType:         types.Float64Type,
								Required:            true,
								Validators:          []validator.List{listvalidator.NoNullValues()},
							},
						},
					},
				},
			},
			"model": schema.SingleNestedAttribute{
				MarkdownDescription: "What a member does with the load.",
				Required:            true,
				Attributes: map[string]schema.Attribute{
					"capacity": schema.Float64Attribute{
						MarkdownDescription: "The load that one member carries, in the unit of the trace.",
						Required:            true,
					},
					"startup": schema.StringAttribute{
						MarkdownDescription: "Time from the decision for a member until it carries load, as a duration such as `90s`. Defaults to `0s`.",
						Optional:            true,
					},
					"change_time": schema.StringAttribute{
						MarkdownDescription: "Time for which data moves between members after a change, as between brokers, as a duration such as `40s`: until then members that were added carry nothing, and no other change begins. Defaults to `0s`.",
						Optional:            true,
					},
					"change_loss_percent": schema.Float64Attribute{
						MarkdownDescription: "Percentage of the capacity of the members at work that is lost for the `change_time`, less than 100. Defaults to `0`.",
						Optional:            true,
					},
				},
			},
			"steps": schema.ListNestedAttribute{
				MarkdownDescription: fmt.Sprintf("The changes of the number of members in their order; the first one is from 0 to the number to begin with. Of more than %d, the last ones.", mostSteps),
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"at": schema.StringAttribute{
						MarkdownDescription: "When it was decided, in RFC 3339, UTC.",
						CustomType:          timetypes.RFC3339Type{},
						Computed:            true,
					},
					"from":   whole("Number of members before."),
					"to":     whole("Number of members after."),
					"reason": resourcekit.ComputedText("Why."),
				}},
			},
			"steps_left_out":            whole("Number of changes before the first one of `steps`."),
			"under_provisioned_seconds": number("Time in which the load was more than the members at work carry, in seconds."),
			"under_provisioned_percent": number("The same in percent of the time of the trace."),
			"member_hours":              number("Hours of all members together, from the decision for each of them on."),
			"changes":                   whole("Number of changes, without the number to begin with."),
			"changes_per_hour":          number("Number of changes in an hour."),
			"reversals":                 whole("How often a change went into the other direction than the one before."),
			"svg": resourcekit.ComputedText("A picture of load, capacity and number of members over time, as the text of an SVG file, 150 kB at most: " +
				"a `local_file`, or `terraform output -raw`, makes a file of it."),
		},
	}
}
