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

// defaultEntries is the number of entries where none is asked for.
const defaultEntries = 100

var dataSourceDescription = fmt.Sprintf("What autoscaling policies decided, and why: what each metric showed and asked for, what changed that, and what came of it. "+
	"Decisions in a row that change nothing, ask for the same and give the same reasons, but for numbers, are one entry, with the values of the last of them.\n\n"+
	"It is kept with the cluster, for %d days and %d entries of a policy, and %d MB for all of them, and can be read while the controller does not run. "+
	"Decisions that change no count are in it after half a minute, and after some minutes where there are hundreds of policies.\n\n"+
	"`terraform-provider-trainyard autoscale explain` shows the same to a person, without Terraform.",
	int(autoscale.KeepHistory.Hours())/24, autoscale.KeepEntries, autoscale.KeepBytes/1_000_000)

// Schema is the schema of trainyard_scaling_history.
func Schema(engines []string) schema.Schema {
	return schema.Schema{
		MarkdownDescription: dataSourceDescription,
		Attributes: map[string]schema.Attribute{
			"cluster": resourcekit.ClusterReadAttribute(engines),
			"group": schema.StringAttribute{
				MarkdownDescription: "Leaves out what was decided for other groups. Defaults to all.",
				Optional:            true,
			},
			"role": schema.StringAttribute{
				MarkdownDescription: "Leaves out what was decided for other roles. Defaults to all.",
				Optional:            true,
			},
			"since": schema.StringAttribute{
				MarkdownDescription: "Leaves out what was decided before: a duration back from now such as `15m`, or a time in RFC 3339 such as `2026-01-31T12:00:00Z`. Defaults to none.",
				Optional:            true,
			},
			"limit": schema.Int64Attribute{
				MarkdownDescription: fmt.Sprintf("Number of entries at most, the newest; 0 for all that are kept. Defaults to %d.", defaultEntries),
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
			"only_changes": schema.BoolAttribute{
				MarkdownDescription: "Leaves out decisions for the count and the size that there was. Those for another one that was not carried out stay, such as in a dry run. Defaults to false.",
				Optional:            true,
			},
			"entries": schema.ListNestedAttribute{
				MarkdownDescription: "The entries, the newest last.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: entryAttributes()},
			},
			"json_lines": schema.StringAttribute{
				MarkdownDescription: "The same entries as lines of JSON, one an entry, to be written to a file.",
				Computed:            true,
			},
		},
	}
}

// entryAttributes are those of an entry.
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
		return schema.StringAttribute{MarkdownDescription: description + ", in RFC 3339, UTC.", CustomType: timetypes.RFC3339Type{}, Computed: true}
	}
	return map[string]schema.Attribute{
		"group":     text("Group of the policy."),
		"role":      text("Role of the policy."),
		"at":        moment("When it was decided, for the first time"),
		"until":     moment("When it was decided for the last time"),
		"decisions": whole("How many decisions the entry stands for. All that follows is of the last of them."),
		"from":      whole("The count that there was."),
		"to":        whole("The count that was decided on."),
		"ready":     whole("How many members did their work."),
		"metrics": schema.ListNestedAttribute{
			MarkdownDescription: "What the policy's metrics, and the schedules that were active, asked for.",
			Computed:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name":        text("Name of the metric or schedule."),
				"value":       number("Value of the metric; null where there was none, or none that was of use."),
				"age_seconds": number("How old the value was, in seconds, or one that was too old; null where there was none."),
				"count":       whole("The count that it asked for; null where it asked for none."),
				"why":         text("Why, in words."),
			}},
		},
		"guards": schema.ListNestedAttribute{
			MarkdownDescription: "What the policy's guards that ask a source were told.",
			Computed:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name":  text("The guard: `busy.prometheus`, `busy.http` or `at_least`."),
				"value": number("What it was told; null where there was nothing of use, and then no member is removed."),
				"why":   text("Why there is no value, in words; null where there is one."),
				"never": schema.BoolAttribute{MarkdownDescription: "Whether the guard has never had a value. Once it was asked a dozen times, the data source warns of it, too.", Computed: true},
			}},
		},
		"vertical": schema.ListNestedAttribute{
			MarkdownDescription: "What a member should request, of the resources that the policy scales vertically.",
			Computed:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name":      text("The resource: `cpus` or `memory_mib`."),
				"requested": number("What a member that is started requests of it; null where that is nothing."),
				"target":    number("What it should request, within the policy's bounds; null as long as nothing was measured, as are the next two."),
				"lower":     number("The least that may be right: what members use half of the time, with the margin."),
				"upper":     number("The most that may be right: what they use no more than for 95 % of the time, with the margin."),
				"why":       text("Why, in words."),
			}},
		},
		"resized": text("What came of having members that are started request something else, in words; null where that was not to be changed."),
		"limits": schema.ListAttribute{
			MarkdownDescription: "Which bounds and guards changed what was asked for, in words, in the order in which they did.",
			ElementType:         types.StringType,
			Computed:            true,
		},
		"why": text("Why it was decided so, in words: all that metrics and limits say."),
		"outcome": text(fmt.Sprintf("What came of it: there was nothing to change (`%s`), it was carried out (`%s`), something stood against it (`%s`), it was tried in vain (`%s`), "+
			"or it would have been carried out, were it not for `dry_run` (`%s`).",
			autoscale.OutcomeUnchanged, autoscale.OutcomeDone, autoscale.OutcomeHeld, autoscale.OutcomeFailed, autoscale.OutcomeDryRun)),
		"outcome_why": text("More about that, in words, such as how a hook of the policy gets on; null where there is no more to say."),
		"change_id":   text("ID of the change by which the policy's hooks know of it; null where they were told of none."),
	}
}
