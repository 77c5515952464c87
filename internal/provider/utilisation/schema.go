package utilisation

import (
	_ "embed"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

//go:embed data_source.md
var dataSourceDescription string

// queriesDescription lists the queries.
func queriesDescription() string {
	text := strings.Builder{}
	text.WriteString("## Prometheus queries\n\n" +
		"The built-in queries are for node_exporter, cAdvisor (members on `swarm`) and dcgm-exporter. " +
		"`prometheus.queries` can replace each of them. A query returns one series per host, member or GPU, in the " +
		"unit of its name, at one moment; " +
		"the statistics of the window are computed from it. " +
		"`$cluster` in a query is replaced by the name of the cluster. " +
		"The labels of a series identify what it belongs to: the host by the first of `host`, `node`, `nodename`, " +
		"`Hostname` and `instance` that holds the name or address of a host (or the name by which `node_uname_info` " +
		"knows that address), the member by `member` or `container_label_trainyard_member`, and the GPU by `uuid` or " +
		"`UUID`.\n\n" +
		"| quantity | query |\n|---|---|\n")
	for _, quantity := range prometheus.Quantities() {
		query := "none: set your own"
		if ready := prometheus.Query(quantity); ready != "" {
			query = "`" + strings.ReplaceAll(ready, "|", "\\|") + "`"
		}
		fmt.Fprintf(&text, "| `%s` | %s |\n", quantity, query)
	}
	return text.String()
}

// quantity is something that is measured, as an attribute.
type quantity struct{ name, description string }

// The quantities of hosts, GPUs and members: the attributes of [hostValues], [gpuValues] and [memberValues].
var (
	cpusUsed   = quantity{"cpus_used", "Number of CPUs in use"}
	memoryUsed = quantity{"memory_used_mib", "Memory in use, in MiB"}

	hostQuantities = []quantity{
		cpusUsed,
		memoryUsed,
		{"load", "Load average over one minute: the number of processes that run or wait to run"},
		{"disk_used_mib", "Space in use, in MiB, on the file system of the host's agent"},
		{"received_bytes_per_second", "Bytes received per second on its network interfaces"},
		{"sent_bytes_per_second", "Bytes sent per second on its network interfaces"},
	}
	gpuQuantities = []quantity{
		{"utilisation_percent", "Share of the time in which it was busy, in percent"},
		memoryUsed,
		{"temperature_celsius", "Temperature, in °C"},
		{"power_watts", "Power draw, in watts"},
	}
	memberQuantities = []quantity{
		cpusUsed,
		memoryUsed,
		{"gpu_memory_used_mib", "GPU memory in use, in MiB"},
		{"received_bytes_per_second", "Bytes received per second"},
		{"sent_bytes_per_second", "Bytes sent per second"},
	}
)

// withTraffic adds the attribute traffic_reason to attributes of members' usage.
func withTraffic(more map[string]schema.Attribute) map[string]schema.Attribute {
	all := map[string]schema.Attribute{
		"traffic_reason": resourcekit.ComputedText(
			"Why the bytes received and sent are unknown, which is not part of `reason`; null if they are known.",
		),
	}
	maps.Copy(all, more)
	return all
}

// attributesOf returns the attributes of quantities.
func attributesOf(quantities []quantity) map[string]schema.Attribute {
	attributes := make(map[string]schema.Attribute, len(quantities))
	for _, q := range quantities {
		attributes[q.name] = schema.Float64Attribute{
			MarkdownDescription: q.description + "; null if unknown.", Computed: true,
		}
	}
	return attributes
}

// measuredObject is an object with these quantities, their statistics, and more attributes.
func measuredObject(quantities []quantity, more map[string]schema.Attribute) schema.NestedAttributeObject {
	attributes := attributesOf(quantities)
	for name, description := range map[string]string{
		"mean": "Mean values over the window.",
		"max":  "Maximum values in the window.",
		"p95":  "95th percentiles of the values in the window.",
	} {
		attributes[name] = schema.SingleNestedAttribute{
			MarkdownDescription: description, Computed: true, Attributes: attributesOf(quantities),
		}
	}
	attributes["sampled_at"] = schema.StringAttribute{
		MarkdownDescription: "When the latest values were measured, in RFC 3339, UTC; null if there are none.",
		CustomType:          timetypes.RFC3339Type{},
		Computed:            true,
	}
	attributes["age_seconds"] = schema.Float64Attribute{
		MarkdownDescription: "Age of the latest values when they were read, in seconds; null if there are none. If " +
			"the clocks of hosts differ, it is off by the difference.",
		Computed: true,
	}
	attributes["reason"] = resourcekit.ComputedText(
		"Why something is unknown, or does not cover the whole window; null otherwise.",
	)
	maps.Copy(attributes, more)
	return schema.NestedAttributeObject{Attributes: attributes}
}

// Schema is the schema of trainyard_utilisation.
func Schema(engines []string) schema.Schema {
	whole := func(description string) schema.Attribute {
		return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
	}
	names := func(description string) schema.Attribute {
		return schema.SetAttribute{
			MarkdownDescription: description,
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.Set{setvalidator.NoNullValues()},
		}
	}
	byName := func(description string, of schema.NestedAttributeObject) schema.Attribute {
		return schema.MapNestedAttribute{MarkdownDescription: description, Computed: true, NestedObject: of}
	}
	return schema.Schema{
		MarkdownDescription: strings.TrimSpace(dataSourceDescription) + "\n\n" + queriesDescription(),
		Attributes: map[string]schema.Attribute{
			"cluster": resourcekit.ClusterReadAttribute(engines),
			"window": schema.StringAttribute{
				MarkdownDescription: "Time up to now that `mean`, `max` and `p95` cover, from `1s` to `10m`, which " +
					"is as long as agents keep values, or to `24h` with Prometheus. " +
					"Anything measured for less than the window is covered from its first sample; a `process` host " +
					"that no agent measures yet, by a brief sample only. Defaults to `" + defaultWindow + "`.",
				Optional:   true,
				Validators: []validator.String{resourcekit.IsDuration()},
			},
			"source": schema.StringAttribute{
				MarkdownDescription: "Source of the values: `" + sourceAgent + "`, the agents on the hosts, or `" +
					sourcePrometheus + "`, for hosts that are already scraped. Defaults to `" + sourceAgent + "`.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.OneOf(sourceAgent, sourcePrometheus)},
			},
			"prometheus": schema.SingleNestedAttribute{
				MarkdownDescription: "The Prometheus server to query if `source` is `" + sourcePrometheus +
					"`. Set credentials in `prometheus` of the provider. " +
					"Prometheus does not report which members use a GPU: `members` of `gpus` is null.",
				Optional: true,
				Attributes: map[string]schema.Attribute{
					"url": schema.StringAttribute{
						MarkdownDescription: "`http://` or `https://` URL of the server, with its path prefix, if " +
							"any. Its certificate is always verified.",
						Required:   true,
						Validators: []validator.String{resourcekit.IsPrometheusURL()},
					},
					"queries": schema.MapAttribute{
						MarkdownDescription: "Queries that replace the built-in ones, by quantity: see \"Prometheus " +
							"queries\". Defaults to none.",
						ElementType: types.StringType,
						Optional:    true,
						Validators: []validator.Map{
							mapvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1)), mapvalidator.NoNullValues(),
							resourcekit.AreQueries(),
						},
					},
					"timeout": schema.StringAttribute{
						MarkdownDescription: "Total time limit for all of the server's responses. Defaults to `" +
							resourcekit.DefaultPrometheusTimeout.String() + "`.",
						Optional:   true,
						Validators: []validator.String{resourcekit.IsTimeout()},
					},
				},
			},
			"filter": schema.SingleNestedAttribute{
				MarkdownDescription: "Returns only what has one of the names in each list that is set. " +
					"Names that match nothing give an empty result, not an error, and an empty list matches nothing. " +
					"Groups and roles are summed over the members that match. Defaults to everything.",
				Optional: true,
				Attributes: map[string]schema.Attribute{
					"hosts": names("Host names: selects hosts, their GPUs, and members on them."),
					"gpus":  names("GPU UUIDs."),
					"groups": names(
						"Group names: selects groups and their members. Hosts and GPUs belong to no group, and stay.",
					),
					"roles":   names("Role names: selects roles and their members."),
					"members": names("Member names."),
				},
			},
			"hosts": byName("The hosts by name. Hosts that share a machine, as those of `process` do, show the "+
				"machine's utilisation.", measuredObject(hostQuantities, map[string]schema.Attribute{
				"cpus": schema.Float64Attribute{
					MarkdownDescription: "Number of CPUs of the host; null if unknown.",
					Computed:            true,
				},
				"memory_mib":  whole("Memory of the host, in MiB; null if unknown."),
				"disk_mib":    whole("Size of the file system of the host's agent, in MiB; null if unknown."),
				"gpus_reason": resourcekit.ComputedText("Why the host's GPUs are unknown; null if they are known."),
			})),
			"gpus": byName("The GPUs of the hosts by UUID. `trainyard_gpus` has more details.",
				measuredObject(gpuQuantities, map[string]schema.Attribute{
					"host": resourcekit.ComputedText(
						"Name of its host; for hosts that share a machine, the first.",
					),
					"memory_mib": whole("Total memory, in MiB; null if unknown."),
					"members": schema.ListAttribute{
						MarkdownDescription: "Names of the members that use it, sorted; null if unknown.",
						ElementType:         types.StringType,
						Computed:            true,
					},
				})),
			"groups": byName("The groups by name, each summed over its running members: their latest values, their "+
				"means, and their peaks (`max`, `p95`), an upper bound of the group's own peak.",
				measuredObject(memberQuantities, withTraffic(map[string]schema.Attribute{
					"roles": byName("The group's roles by name, each summed over its running members. A role without "+
						"members is listed, too; its `reason` says why nothing is known about it.", measuredObject(
						memberQuantities, withTraffic(nil),
					)),
				}))),
			"members": byName("The members of all groups by name, each summed over its processes. A missing member "+
				"is listed, too; its `reason` says why nothing is known about it.", measuredObject(memberQuantities,
				withTraffic(map[string]schema.Attribute{
					"group": resourcekit.ComputedText("Name of its group."),
					"role":  resourcekit.ComputedText("Name of its role."),
					"host":  resourcekit.ComputedText("Name of its host; null if it has none."),
				}))),
		},
	}
}
