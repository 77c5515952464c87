package utilisation

import (
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

const dataSourceDescription = "What hosts, GPUs, groups and members of a cluster use at the moment, and used over a window of time up to now.\n\n" +
	"The attributes of a host, GPU, group, role or member are its last values. `mean`, `max` and `p95` have the same attributes over the `window`: " +
	"`utilisation_percent` of a GPU is how busy it was in the last second, which says little, and `mean.utilisation_percent` how busy it was in the last minute. " +
	"What is not known is null, never 0, and `reason` says why.\n\n" +
	"Network traffic of a member is known where it has a network of its own, as containers on a Swarm do: that of all interfaces but the loopback. " +
	"Of members that share their host's network it is known where systemd counts it, on bare hosts with control groups of version 2, alone or beside those of version 1: " +
	"bytes of IP packets over the last five seconds, including those between members of the same host. Elsewhere, as on `process`, it is null, and `traffic_reason` says why."

// queriesDescription tells which queries there are.
func queriesDescription() string {
	text := strings.Builder{}
	text.WriteString("## Queries of Prometheus\n\n" +
		"Those that are ready-made are for node_exporter, cAdvisor (members on `swarm`) and dcgm-exporter, each of which `prometheus.queries` can replace. A query returns one series for each host, member or GPU, in the unit of its name, " +
		"at one moment: the statistics of the window are taken of it. `$cluster` in it stands for the name of the cluster. " +
		"Of the labels of a series, the first of `host`, `node`, `nodename`, `Hostname` and `instance` that has the name or the address of a host says which it is of " +
		"(or the name by which `node_uname_info` knows that address), `member` or `container_label_trainyard_member` the member, and `uuid` or `UUID` the GPU.\n\n" +
		"| quantity | query |\n|---|---|\n")
	for _, quantity := range prometheus.Quantities() {
		query := "none: give one to have it"
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
	cpusUsed   = quantity{"cpus_used", "Number of processors that are busy"}
	memoryUsed = quantity{"memory_used_mib", "Memory in use, in MiB"}

	hostQuantities = []quantity{
		cpusUsed,
		memoryUsed,
		{"load", "Number of processes that run or wait to, the mean of a minute"},
		{"disk_used_mib", "Space in use, in MiB, of the file system that the host's agent is on"},
		{"received_bytes_per_second", "Bytes that its network interfaces received, in a second"},
		{"sent_bytes_per_second", "Bytes that its network interfaces sent, in a second"},
	}
	gpuQuantities = []quantity{
		{"utilisation_percent", "How much of the time it was working, in percent"},
		memoryUsed,
		{"temperature_celsius", "Its temperature, in °C"},
		{"power_watts", "Power that it draws, in watts"},
	}
	memberQuantities = []quantity{
		cpusUsed,
		memoryUsed,
		{"gpu_memory_used_mib", "Memory in use on GPUs, in MiB"},
		{"received_bytes_per_second", "Bytes received per second"},
		{"sent_bytes_per_second", "Bytes sent per second"},
	}
)

// withTraffic returns more attributes of what members use.
func withTraffic(more map[string]schema.Attribute) map[string]schema.Attribute {
	all := map[string]schema.Attribute{
		"traffic_reason": resourcekit.ComputedText("Why the bytes received and sent are not known, which `reason` leaves out; null where they are."),
	}
	maps.Copy(all, more)
	return all
}

// attributesOf returns the attributes of quantities.
func attributesOf(quantities []quantity) map[string]schema.Attribute {
	attributes := make(map[string]schema.Attribute, len(quantities))
	for _, q := range quantities {
		attributes[q.name] = schema.Float64Attribute{MarkdownDescription: q.description + "; null where it is not known.", Computed: true}
	}
	return attributes
}

// measuredObject is what quantities are measured of, with more that is known of it.
func measuredObject(quantities []quantity, more map[string]schema.Attribute) schema.NestedAttributeObject {
	attributes := attributesOf(quantities)
	for name, description := range map[string]string{
		"mean": "The mean values over the window.",
		"max":  "The largest values in the window.",
		"p95":  "The values that 95 % of those in the window do not exceed.",
	} {
		attributes[name] = schema.SingleNestedAttribute{MarkdownDescription: description, Computed: true, Attributes: attributesOf(quantities)}
	}
	attributes["sampled_at"] = schema.StringAttribute{
		MarkdownDescription: "When the last values were measured, in RFC 3339, UTC; null where there are none.",
		CustomType:          timetypes.RFC3339Type{},
		Computed:            true,
	}
	attributes["age_seconds"] = schema.Float64Attribute{
		MarkdownDescription: "How old the last values were when they were read, in seconds; null where there are none. Between hosts whose clocks differ, it is off by as much.",
		Computed:            true,
	}
	attributes["reason"] = resourcekit.ComputedText("Why something is not known, or is not of the whole window; null where all is.")
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
		MarkdownDescription: dataSourceDescription + "\n\n" + queriesDescription(),
		Attributes: map[string]schema.Attribute{
			"cluster": resourcekit.ClusterReadAttribute(engines),
			"window": schema.StringAttribute{
				MarkdownDescription: "Time up to now that `mean`, `max` and `p95` are over, from `1s` to `10m`, which is as long as agents remember, or to `24h` from Prometheus. " +
					"What has not been there for that long is told of since then; where no agent measures a host of `process` yet, of a moment. Defaults to `" + defaultWindow + "`.",
				Optional:   true,
				Validators: []validator.String{resourcekit.IsDuration()},
			},
			"source": schema.StringAttribute{
				MarkdownDescription: "Who is asked: `" + sourceAgent + "`, the agents on the hosts, or `" + sourcePrometheus + "`, where others scrape the hosts already. Defaults to `" + sourceAgent + "`.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(sourceAgent, sourcePrometheus)},
			},
			"prometheus": schema.SingleNestedAttribute{
				MarkdownDescription: "The Prometheus that is asked, where `source` is `" + sourcePrometheus + "`. How to log in to it is said in the provider's block `prometheus`. " +
					"It does not tell which members use a GPU: that is null.",
				Optional: true,
				Attributes: map[string]schema.Attribute{
					"url": schema.StringAttribute{
						MarkdownDescription: "Its address, `http://` or `https://`, with the path that it is below, where there is one. Its certificate is verified, always.",
						Required:            true,
						Validators:          []validator.String{resourcekit.IsPrometheusURL()},
					},
					"queries": schema.MapAttribute{
						MarkdownDescription: "Queries in the place of the ready-made ones, by quantity, see below.",
						ElementType:         types.StringType,
						Optional:            true,
						Validators:          []validator.Map{mapvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1)), mapvalidator.NoNullValues(), resourcekit.AreQueries()},
					},
					"timeout": schema.StringAttribute{
						MarkdownDescription: "How long to wait for all its answers together. Defaults to `" + resourcekit.DefaultPrometheusTimeout.String() + "`.",
						Optional:            true,
						Validators:          []validator.String{resourcekit.IsTimeout()},
					},
				},
			},
			"filter": schema.SingleNestedAttribute{
				MarkdownDescription: "What is to be shown, where it is not all: what has one of the names of each list that is given. " +
					"As in any list of a data source, names that nothing has give an empty result, and no error; an empty list takes nothing. " +
					"Groups and roles are summed up over the members that pass.",
				Optional: true,
				Attributes: map[string]schema.Attribute{
					"hosts":   names("Names of hosts: of hosts, of their GPUs, and of members on them."),
					"gpus":    names("UUIDs of GPUs."),
					"groups":  names("Names of groups: of groups and their members. Hosts and GPUs are of no group, and stay."),
					"roles":   names("Names of roles: of roles and their members."),
					"members": names("Names of members."),
				},
			},
			"hosts": byName("The hosts by name. Hosts that share a machine, as those of `process` do, show the use of the machine.", measuredObject(hostQuantities, map[string]schema.Attribute{
				"cpus": schema.Float64Attribute{
					MarkdownDescription: "Number of processors that the host has; null where it is not known.",
					Computed:            true,
				},
				"memory_mib":  whole("Memory that the host has, in MiB; null where it is not known."),
				"disk_mib":    whole("Size of the file system that the host's agent is on, in MiB; null where it is not known."),
				"gpus_reason": resourcekit.ComputedText("Why it is not known which GPUs the host has; null where it is."),
			})),
			"gpus": byName("The GPUs of the hosts by UUID; `trainyard_gpus` tells more of them.", measuredObject(gpuQuantities, map[string]schema.Attribute{
				"host":       resourcekit.ComputedText("Name of its host. Of hosts that share a machine, it is the first."),
				"memory_mib": whole("All of its memory, in MiB; null where it is not known."),
				"members": schema.ListAttribute{
					MarkdownDescription: "Names of the members that use it, sorted; null where that is not known.",
					ElementType:         types.StringType,
					Computed:            true,
				},
			})),
			"groups": byName("The groups by name, each with all its members that run: sums of their last values, their means, and their peaks (`max`, `p95`), which the peak of the sum is not above.",
				measuredObject(memberQuantities, withTraffic(map[string]schema.Attribute{
					"roles": byName("The group's roles by name, each with all its members that run. One without members is there, too, with the reason why nothing is known of it.", measuredObject(memberQuantities, withTraffic(nil))),
				}))),
			"members": byName("The members of all groups by name, each with all its processes. One that is missing is there, too, with the reason why nothing is known of it.", measuredObject(memberQuantities, withTraffic(map[string]schema.Attribute{
				"group": resourcekit.ComputedText("Name of its group."),
				"role":  resourcekit.ComputedText("Name of its role."),
				"host":  resourcekit.ComputedText("Name of its host; null where it is on none."),
			}))),
		},
	}
}
