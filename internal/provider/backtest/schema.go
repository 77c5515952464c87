package backtest

import (
	_ "embed"
	"fmt"
	"strings"

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

//go:embed data_source.md
var dataSourceDescription string

// Schema is the schema of trainyard_policy_backtest.
func Schema() schema.Schema {
	whole := func(description string) schema.Attribute {
		return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
	}
	number := func(description string) schema.Attribute {
		return schema.Float64Attribute{MarkdownDescription: description, Computed: true}
	}
	return schema.Schema{
		MarkdownDescription: strings.TrimSpace(dataSourceDescription),
		Attributes: map[string]schema.Attribute{
			"policy": schema.SingleNestedAttribute{
				MarkdownDescription: "The policy.",
				Required:            true,
				Attributes: policy.ReadAttributes(policy.ScalingAttributes(map[string]resource.Attribute{
					"signal": resource.StringAttribute{
						MarkdownDescription: fmt.Sprintf("What the metric shows of the load: `%s`, `%s`, `%s`, `%s`, "+
							"`%s` or `%s`, see above. Defaults to what suits the algorithm.",
							autoscale.SignalUtilisation, autoscale.SignalLoad, autoscale.SignalQueue,
							autoscale.SignalLatency, autoscale.SignalChanging, autoscale.SignalSkew),
						Optional: true,
					},
				})),
			},
			"trace": schema.SingleNestedAttribute{
				MarkdownDescription: "The load over time. Set exactly one attribute.",
				Required:            true,
				Attributes: map[string]schema.Attribute{
					"csv": schema.StringAttribute{
						MarkdownDescription: "A table as text, such as `file(\"load.csv\")`, with two columns and an " +
							"optional header: the time, in RFC 3339 or in seconds since 1970, at equal intervals, " +
							"and the load. " +
							"A row without a load is a gap in the metrics; the load itself goes on as before.",
						Optional: true,
					},
					"prometheus": schema.SingleNestedAttribute{
						MarkdownDescription: "Values recorded by a Prometheus server. Set credentials in " +
							"`prometheus` of the provider. Times without a value are gaps in the metrics.",
						Optional: true,
						Attributes: map[string]schema.Attribute{
							"url": schema.StringAttribute{
								MarkdownDescription: "`http://` or `https://` URL of the server, with its path " +
									"prefix, if any. Its certificate is always verified.",
								Required:   true,
								Validators: []validator.String{resourcekit.IsPrometheusURL()},
							},
							"query": schema.StringAttribute{
								MarkdownDescription: "PromQL query that returns one series, such as " +
									"`sum(rate(http_requests_total[5m]))`.",
								Required:   true,
								Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
							},
							"start": schema.StringAttribute{
								MarkdownDescription: "Time of the first value, in RFC 3339. With a fixed time, " +
									"rather than one counted back from now, each plan reads the same values.",
								Required: true,
							},
							"end": schema.StringAttribute{
								MarkdownDescription: "Time up to which values are read, in RFC 3339.",
								Required:            true,
							},
							"step": schema.StringAttribute{
								MarkdownDescription: "Time between values, as a duration such as `1m`.",
								Required:            true,
							},
							"timeout": schema.StringAttribute{
								MarkdownDescription: "Total time limit for all of the server's responses. Defaults to " +
									"`" + resourcekit.DefaultPrometheusTimeout.String() + "`.",
								Optional:   true,
								Validators: []validator.String{resourcekit.IsTimeout()},
							},
						},
					},
					"load": schema.SingleNestedAttribute{
						MarkdownDescription: "Values at equal intervals.",
						Optional:            true,
						Attributes: map[string]schema.Attribute{
							"start": schema.StringAttribute{
								MarkdownDescription: "Time of the first value, in RFC 3339, such as " +
									"`2026-01-31T12:00:00Z`.",
								Required: true,
							},
							"step": schema.StringAttribute{
								MarkdownDescription: "Time between values, as a duration such as `1m`.",
								Required:            true,
							},
							"values": schema.ListAttribute{
								MarkdownDescription: "The load, in any unit: requests or samples per second, CPUs. " +
									"Each value holds until the next one.",
								ElementType: types.Float64Type,
								Required:    true,
								Validators:  []validator.List{listvalidator.NoNullValues()},
							},
						},
					},
				},
			},
			"model": schema.SingleNestedAttribute{
				MarkdownDescription: "How members handle the load.",
				Required:            true,
				Attributes: map[string]schema.Attribute{
					"capacity": schema.Float64Attribute{
						MarkdownDescription: "Load that one member carries, in the unit of the trace.",
						Required:            true,
					},
					"startup": schema.StringAttribute{
						MarkdownDescription: "Time from the decision to add a member until it carries load, as a " +
							"duration such as `90s`. Defaults to `0s`.",
						Optional: true,
					},
					"change_time": schema.StringAttribute{
						MarkdownDescription: "Time during which data moves between members after a change, as " +
							"between brokers, as a duration such as `40s`. Until it is over, added members carry " +
							"nothing, and no other change begins. Defaults to `0s`.",
						Optional: true,
					},
					"change_loss_percent": schema.Float64Attribute{
						MarkdownDescription: "Percentage of the ready members' capacity that is lost during " +
							"`change_time`, from 0 to below 100. Defaults to 0.",
						Optional: true,
					},
				},
			},
			"steps": schema.ListNestedAttribute{
				MarkdownDescription: fmt.Sprintf("Changes of the number of members, in order; the first one is from "+
					"0 to the initial number. Only the last %d are listed.", mostSteps),
				Computed: true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"at": schema.StringAttribute{
						MarkdownDescription: "Time of the decision, in RFC 3339, UTC.",
						CustomType:          timetypes.RFC3339Type{},
						Computed:            true,
					},
					"from":   whole("Number of members before the change."),
					"to":     whole("Number of members after the change."),
					"reason": resourcekit.ComputedText("Reason for the change."),
				}},
			},
			"steps_left_out": whole("Number of earlier changes, which are not in `steps`."),
			"under_provisioned_seconds": number(
				"Time in which the load exceeded the capacity of the ready members, in seconds.",
			),
			"under_provisioned_percent": number(
				"Time in which the load exceeded the capacity of the ready members, in percent of the " +
					"trace's duration.",
			),
			"member_hours": number(
				"Member-hours: the hours of all members together, each counted from the decision to add it.",
			),
			"changes":          whole("Number of changes, not counting the initial number."),
			"changes_per_hour": number("Number of changes per hour."),
			"reversals":        whole("Number of changes in the opposite direction to the one before."),
			"svg": resourcekit.ComputedText("Chart of load, capacity and number of members over time, as the text of " +
				"an SVG file, at most 150 kB: " +
				"write it to a file with `local_file` or `terraform output -raw`."),
		},
	}
}
