package group

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// maxSecretBytes leaves some room below Swarm's limit of 512,000 bytes.
const maxSecretBytes = 500_000

// containerAttribute is the settings that only engines with containers have. Precedence describes
// which of two settings counts.
func containerAttribute(precedence string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: strings.TrimSpace("Settings of the members' containers, on `swarm`, and on `systemd` " +
			"for members with an `image`. For members without an image on `systemd`, only `user`, `stop_signal`, " +
			"`ulimits`, `configs` and `secrets` apply. Omitted attributes take the engine's defaults. " + precedence),
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"pull_policy": schema.StringAttribute{
				MarkdownDescription: "When a host contacts the image's registry: `if_not_present` (an image that the " +
					"hosts have is used as it is), `always` or `never`. Defaults to `if_not_present`.",
				Optional: true,
			},
			"user": schema.StringAttribute{
				MarkdownDescription: "User that the members run as: a name known to the image (or, without an image, " +
					"to the host) or a UID, alone or with a group, such as `1000:100`. Defaults to the image's user, " +
					"or to root without an image. Files of `secrets` are owned by root: for another user, give them " +
					"a `mode` such as `0444`. On `systemd`, those of members without a container are owned " +
					"by the user.",
				Optional: true,
			},
			"init": schema.BoolAttribute{
				MarkdownDescription: "Whether to run an init process as PID 1, which forwards signals and reaps " +
					"orphaned processes. Defaults to `false`.",
				Optional: true,
			},
			"stop_signal": schema.StringAttribute{
				MarkdownDescription: "Signal that asks a member to stop, such as `SIGINT`. Defaults to the image's " +
					"own, usually SIGTERM.",
				Optional: true,
			},
			"shm_size_mib": schema.Int64Attribute{
				MarkdownDescription: "Size of `/dev/shm` in MiB, which PyTorch's data loaders use to pass batches. " +
					"Defaults to 64, too little for most of them.",
				Optional: true,
			},
			"ulimits": schema.MapNestedAttribute{
				MarkdownDescription: "Resource limits of the members' processes, by name: `memlock` (RDMA and NCCL " +
					"want `-1`), `nofile`, `nproc`, `stack`, `core` and others as in `docker run --ulimit`.",
				Optional:   true,
				Validators: []validator.Map{mapvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"soft": schema.Int64Attribute{
						MarkdownDescription: "Soft limit, the one in effect. A process can raise it up to `hard`. -1 " +
							"is unlimited.",
						Required: true,
					},
					"hard": schema.Int64Attribute{
						MarkdownDescription: "Hard limit: the maximum for a process, `soft` or more. -1 is unlimited.",
						Required:            true,
					},
				}},
			},
			"health_check": healthCheckAttribute(),
			"logging": schema.SingleNestedAttribute{
				MarkdownDescription: "Where the engine writes the members' output. Defaults to the engine's own " +
					"driver. The data source `trainyard_logs` can read the drivers `json-file`, `local` and " +
					"`journald`.",
				Optional: true,
				Attributes: map[string]schema.Attribute{
					"driver": schema.StringAttribute{
						MarkdownDescription: "Name of the log driver, such as `json-file` or `journald`.",
						Required:            true,
					},
					"options": schema.MapAttribute{
						MarkdownDescription: "Driver options by name, such as `max-size`. Defaults to none.",
						ElementType:         types.StringType,
						Optional:            true,
						Validators:          []validator.Map{mapvalidator.NoNullValues()},
					},
				},
			},
			"ports": schema.MapNestedAttribute{
				MarkdownDescription: "Ports published on the members' hosts, by arbitrary names, such as for a " +
					"dashboard. Members reach each other without them. Two members that publish the same port can't " +
					"be on the same host. On `systemd`, containers use their host's network, so `published` must " +
					"equal `target`; placement keeps other members off these ports.",
				Optional:   true,
				Validators: []validator.Map{mapvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"target": schema.Int64Attribute{
						MarkdownDescription: "Port that the member listens on, 1 to 65535.",
						Required:            true,
					},
					"published": schema.Int64Attribute{
						MarkdownDescription: "Port on the host, 1 to 65535.",
						Required:            true,
					},
					"protocol": schema.StringAttribute{
						MarkdownDescription: "`tcp`, `udp` or `sctp`. Defaults to `tcp`.",
						Optional:            true,
					},
				}},
			},
			"configs": schema.MapNestedAttribute{
				MarkdownDescription: "Small files for the members, by name: letters, digits, underscores, dots and " +
					"hyphens. Changed content restarts the members.",
				Optional:   true,
				Validators: []validator.Map{mapvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"content": schema.StringAttribute{
						MarkdownDescription: "Content of the file. All files of a group together must be smaller " +
							"than 1,000,000 bytes. Stored in plain text, in the state and with the cluster.",
						Required: true,
					},
					"target": schema.StringAttribute{
						MarkdownDescription: "Absolute path at which members see the file; `/run/trainyard` is " +
							"reserved. Required for containers. Omit it for members without a container, on " +
							"`systemd`: they find the file at `$CREDENTIALS_DIRECTORY/<name>`.",
						Optional: true,
					},
					"mode": modeAttribute("0444"),
				}},
			},
			"secrets": schema.MapNestedAttribute{
				MarkdownDescription: "Small files whose contents are kept out of state, plan and log, by name: " +
					"letters, digits, underscores, dots and hyphens. " +
					"Their values are write-only, which requires Terraform or OpenTofu 1.11 or later.",
				Optional:   true,
				Validators: []validator.Map{mapvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"value": schema.StringAttribute{
						MarkdownDescription: "Content of the file, 1 to 500,000 bytes; it can come from an ephemeral " +
							"resource. It is passed to the engine when `version` is new or changes, and stored " +
							"nowhere else.",
						Required:   true,
						Sensitive:  true,
						WriteOnly:  true,
						Validators: []validator.String{stringvalidator.LengthBetween(1, maxSecretBytes)},
					},
					"version": schema.StringAttribute{
						MarkdownDescription: "Any text that you change along with the value, such as `\"1\"`: " +
							"Terraform can't detect changes of a write-only value. A different version restarts the " +
							"members with the new value.",
						Required: true,
					},
					"target": schema.StringAttribute{
						MarkdownDescription: "Absolute path at which members see the file. Defaults to " +
							"`/run/secrets/<name>`. Omit it for members without a container, on `systemd`: they find " +
							"the file at `$CREDENTIALS_DIRECTORY/<name>`.",
						Optional: true,
					},
					"mode": modeAttribute("0400"),
				}},
			},
		},
	}
}

func healthCheckAttribute() schema.Attribute {
	wait := func(description string) schema.Attribute {
		return schema.StringAttribute{
			MarkdownDescription: description,
			Validators:          []validator.String{resourcekit.IsDuration()},
			PlanModifiers:       []planmodifier.String{resourcekit.SameDuration()},
			Optional:            true,
		}
	}
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Command that checks whether a member is healthy. An unhealthy member is stopped, and " +
			"its exit code, usually 137 or 143, decides what follows: these are retried by default. Defaults to the " +
			"image's own health check.",
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"command": schema.ListAttribute{
				MarkdownDescription: "Program and arguments, run in the member's container without a shell. Exit " +
					"code 0 means healthy.",
				ElementType: types.StringType,
				Required:    true,
				Validators:  []validator.List{listvalidator.NoNullValues()},
			},
			"interval":     wait("Time between checks, such as `10s`. Defaults to `30s`."),
			"timeout":      wait("Time after which an unfinished check counts as failed. Defaults to `30s`."),
			"start_period": wait("Time after the start during which failed checks don't count. Defaults to none."),
			"retries": schema.Int64Attribute{
				MarkdownDescription: "Number of consecutive failed checks after which the member is unhealthy. " +
					"Defaults to 3.",
				Optional: true,
			},
		},
	}
}

func modeAttribute(fallback string) schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: "File permissions, in octal digits. Defaults to `\"" + fallback + "\"`.",
		Optional:            true,
		Validators:          []validator.String{resourcekit.IsMode()},
	}
}
