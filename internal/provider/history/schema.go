package history

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// defaultEntries is the default of limit.
const defaultEntries = 100

var dataSourceDescription = fmt.Sprintf("What autoscaling policies decided, and why: what each metric showed and "+
	"asked for, which limits applied, and the outcome. "+
	"Consecutive decisions that change nothing, ask for the same count and give the same reasons, except for "+
	"numbers, form one entry, with the values of the last one.\n\n"+
	"The history is kept with the cluster, for up to %d days and %d entries per policy and %d MB for all policies. "+
	"It can be read even while the controller is not running. "+
	"Decisions that leave the count unchanged appear in it after half a minute, or after a few minutes with hundreds "+
	"of policies.\n\n"+
	"`terraform-provider-trainyard autoscale explain` shows the same for people to read, without Terraform.",
	int(autoscale.KeepHistory.Hours())/24, autoscale.KeepEntries, autoscale.KeepBytes/1_000_000)

// Schema is the schema of trainyard_scaling_history.
func Schema(engines []string) schema.Schema {
	return schema.Schema{
		MarkdownDescription: dataSourceDescription,
		Attributes: map[string]schema.Attribute{
			"cluster": resourcekit.ClusterReadAttribute(engines),
			"group": schema.StringAttribute{
				MarkdownDescription: "Name of the group to return decisions for. Defaults to all groups.",
				Optional:            true,
			},
			"role": schema.StringAttribute{
				MarkdownDescription: "Name of the role to return decisions for. Defaults to all roles.",
				Optional:            true,
			},
			"since": schema.StringAttribute{
				MarkdownDescription: "Omits earlier decisions: a duration back from now, such as `15m`, or a time in " +
					"RFC 3339, such as `2026-01-31T12:00:00Z`. Defaults to none.",
				Optional: true,
			},
			"limit": schema.Int64Attribute{
				MarkdownDescription: fmt.Sprintf(
					"Maximum number of entries: the newest ones; 0 returns all that are kept. Defaults to %d.",
					defaultEntries,
				),
				Optional:   true,
				Validators: []validator.Int64{int64validator.AtLeast(0)},
			},
			"only_changes": schema.BoolAttribute{
				MarkdownDescription: "Omits decisions to keep the current count and requests. Decisions to change " +
					"them are included even if they were not carried out, as in a dry run. Defaults to `false`.",
				Optional: true,
			},
			"entries": schema.ListNestedAttribute{
				MarkdownDescription: "The entries, newest last.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: entryAttributes()},
			},
			"json_lines": schema.StringAttribute{
				MarkdownDescription: "The same entries as JSON lines, one per entry, for example to write to a file.",
				Computed:            true,
			},
		},
	}
}

// entryAttributes are the attributes of an entry.
func entryAttributes() map[string]schema.Attribute {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{MarkdownDescription: description, Computed: true}
	}
	whole := func(description string) schema.Attribute {
		return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
	}
	number := func(description string) schema.Attribute {
		return schema.Float64Attribute{MarkdownDescription: description, Computed: true}
	}
	moment := func(description string) schema.Attribute {
		return schema.StringAttribute{
			MarkdownDescription: description + ", in RFC 3339, UTC.", CustomType: timetypes.RFC3339Type{},
			Computed: true,
		}
	}
	return map[string]schema.Attribute{
		"group":     text("Group of the policy."),
		"role":      text("Role of the policy."),
		"at":        moment("Time of the first decision"),
		"until":     moment("Time of the last decision"),
		"decisions": whole("Number of decisions in the entry. All other values are those of the last one."),
		"from":      whole("Count before the decision."),
		"to":        whole("Count decided on."),
		"ready":     whole("Number of ready members."),
		"metrics": schema.ListNestedAttribute{
			MarkdownDescription: "What the policy's metrics and its active schedules asked for.",
			Computed:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name":  text("Name of the metric or schedule."),
				"value": number("Value of the metric; null if there was no usable one."),
				"age_seconds": number(
					"Age of the value, in seconds, even if it was too old to use; null if there was none.",
				),
				"count": whole("Count that it asked for; null if it asked for none."),
				"why":   text("Reason, in words."),
			}},
		},
		"guards": schema.ListNestedAttribute{
			MarkdownDescription: "What the policy's guards read from their sources.",
			Computed:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name": text("The guard: `busy.prometheus`, `busy.http` or `at_least`."),
				"value": number(
					"Value that it read; null if there was no usable one, in which case no member is removed.",
				),
				"why": text("Why there is no value, in words; null if there is one."),
				"never": schema.BoolAttribute{MarkdownDescription: "Whether the guard has never had a value. After a " +
					"dozen attempts, the data source also warns about it.", Computed: true},
			}},
		},
		"vertical": schema.ListNestedAttribute{
			MarkdownDescription: "What a member should request, for the resources that the policy scales vertically.",
			Computed:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name":      text("The resource: `cpus` or `memory_mib`."),
				"requested": number("What a newly started member requests; null if it requests none."),
				"target": number("Recommended request, within the policy's bounds; null, like `lower` and " +
					"`upper`, until something has been measured."),
				"lower": number(
					"Lower bound of the recommendation: what members use half of the time, plus the margin.",
				),
				"upper": number(
					"Upper bound of the recommendation: what members do not exceed 95 % of the time, plus the margin.",
				),
				"why": text("Reason, in words."),
			}},
		},
		"resized": text(
			"Result of changing what newly started members request, in words; null if no such change was due.",
		),
		"limits": schema.ListAttribute{
			MarkdownDescription: "Bounds and guards that changed the count asked for, in words, in the order applied.",
			ElementType:         types.StringType,
			Computed:            true,
		},
		"why": text("Reason for the decision, in words: everything that the metrics and limits say."),
		"outcome": text(fmt.Sprintf("Outcome: there was nothing to change (`%s`), it was carried out (`%s`), "+
			"something prevented it (`%s`), it was tried and failed (`%s`), "+
			"or it would have been carried out without `dry_run` (`%s`).",
			autoscale.OutcomeUnchanged, autoscale.OutcomeDone, autoscale.OutcomeHeld, autoscale.OutcomeFailed,
			autoscale.OutcomeDryRun)),
		"outcome_why": text(
			"Details of the outcome, in words, such as the progress of a hook of the policy; null if there are none.",
		),
		"change_id": text("ID of the change, as passed to the policy's hooks; null if none were called."),
	}
}
