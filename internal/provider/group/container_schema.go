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

// maxSecretBytes leaves some room: Swarm takes fewer than 512,000 bytes.
const maxSecretBytes = 500_000

// containerAttribute is what only engines that run containers can do for members. The precedence says which of two
// counts.
func containerAttribute(precedence string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: strings.TrimSpace("What the members' containers have and may do, for `swarm`, and for members of `systemd` with an `image`. Of it, members of `systemd` without one get `user`, `stop_signal`, `ulimits`, `configs` and `secrets`. What is left out is the engine's default. " + precedence),
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"pull_policy": schema.StringAttribute{
				MarkdownDescription: "When a host asks the image's registry: `if_not_present` (an image that the hosts have is taken as it is), `always` or `never`. Defaults to `if_not_present`.",
				Optional:            true,
			},
			"user": schema.StringAttribute{
				MarkdownDescription: "User that the members run as: a name that the image, or without one the host, knows, or a UID, alone or with a group, such as `1000:100`. Defaults to the image's own, without an image to root. Files of `secrets` are root's: give them a `mode` such as `0444` for another user. On `systemd`, those of members without a container are the user's own.",
				Optional:            true,
			},
			"init": schema.BoolAttribute{
				MarkdownDescription: "Whether a small init is the first process, which hands on signals, and reaps the processes that others leave behind. Defaults to `false`.",
				Optional:            true,
			},
			"stop_signal": schema.StringAttribute{
				MarkdownDescription: "Signal by which a member is told to end, such as `SIGINT`. Defaults to the image's own, which is SIGTERM in most cases.",
				Optional:            true,
			},
			"shm_size_mib": schema.Int64Attribute{
				MarkdownDescription: "Size of `/dev/shm` in MiB, through which PyTorch's data loaders hand over their batches. Defaults to 64, which is too little for most of them.",
				Optional:            true,
			},
			"ulimits": schema.MapNestedAttribute{
				MarkdownDescription: "Limits of the members' processes by name: `memlock` (RDMA and NCCL want `-1`), `nofile`, `nproc`, `stack`, `core` and others as in `docker run --ulimit`.",
				Optional:            true,
				Validators:          []validator.Map{mapvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"soft": schema.Int64Attribute{
						MarkdownDescription: "What counts; a process can raise it up to `hard`. -1 is unlimited.",
						Required:            true,
					},
					"hard": schema.Int64Attribute{
						MarkdownDescription: "What a process can have at most, `soft` or more. -1 is unlimited.",
						Required:            true,
					},
				}},
			},
			"health_check": healthCheckAttribute(),
			"logging": schema.SingleNestedAttribute{
				MarkdownDescription: "Where the engine puts what members write. Defaults to the engine's own driver. The data source `trainyard_logs` can read the drivers `json-file`, `local` and `journald`.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"driver": schema.StringAttribute{
						MarkdownDescription: "Name of the log driver, such as `json-file` or `journald`.",
						Required:            true,
					},
					"options": schema.MapAttribute{
						MarkdownDescription: "Options of the driver by name, such as `max-size`. Defaults to none.",
						ElementType:         types.StringType,
						Optional:            true,
						Validators:          []validator.Map{mapvalidator.NoNullValues()},
					},
				},
			},
			"ports": schema.MapNestedAttribute{
				MarkdownDescription: "Ports by which members are reached at their hosts, by any names, such as a dashboard's; members reach each other without. Two members that publish the same port can't be on one host. On `systemd`, containers are in the network of their host, so that `published` has to be the same as `target`; placement keeps other members off these ports.",
				Optional:            true,
				Validators:          []validator.Map{mapvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"target": schema.Int64Attribute{
						MarkdownDescription: "Port on which the member listens, 1 to 65535.",
						Required:            true,
					},
					"published": schema.Int64Attribute{
						MarkdownDescription: "Port of the host, 1 to 65535.",
						Required:            true,
					},
					"protocol": schema.StringAttribute{
						MarkdownDescription: "`tcp`, `udp` or `sctp`. Defaults to `tcp`.",
						Optional:            true,
					},
				}},
			},
			"configs": schema.MapNestedAttribute{
				MarkdownDescription: "Small files that members find, by name: letters, digits, underscores, dots and hyphens. Another content restarts the members.",
				Optional:            true,
				Validators:          []validator.Map{mapvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"content": schema.StringAttribute{
						MarkdownDescription: "What the file holds: of all files of a group together, fewer than 1,000,000 bytes. It is stored in plain text, in the state and with the cluster.",
						Required:            true,
					},
					"target": schema.StringAttribute{
						MarkdownDescription: "Absolute path of the file, as members see it; `/run/trainyard` is reserved. Required for containers. A member without one, on `systemd`, finds the file as `$CREDENTIALS_DIRECTORY/<name>`: omit it there.",
						Optional:            true,
					},
					"mode": modeAttribute("0444"),
				}},
			},
			"secrets": schema.MapNestedAttribute{
				MarkdownDescription: "Small files whose contents are kept from state, plan and log, by name: letters, digits, underscores, dots and hyphens. " +
					"They are write-only, which Terraform knows from version 1.11 on, and OpenTofu likewise.",
				Optional:   true,
				Validators: []validator.Map{mapvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"value": schema.StringAttribute{
						MarkdownDescription: "What the file holds, 1 to 500,000 bytes; it can come from an ephemeral resource. It is handed to the engine when `version` is new, and stored nowhere else.",
						Required:            true,
						Sensitive:           true,
						WriteOnly:           true,
						Validators:          []validator.String{stringvalidator.LengthBetween(1, maxSecretBytes)},
					},
					"version": schema.StringAttribute{
						MarkdownDescription: "Any text that changes with the value, such as `\"1\"`: Terraform can't tell whether a write-only value changed. Another version restarts the members with the new value.",
						Required:            true,
					},
					"target": schema.StringAttribute{
						MarkdownDescription: "Absolute path of the file, as members see it. Defaults to `/run/secrets/<name>`. A member without a container, on `systemd`, finds the file as `$CREDENTIALS_DIRECTORY/<name>`: omit it there.",
						Optional:            true,
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
		MarkdownDescription: "A command that checks whether a member is healthy. An unhealthy member is stopped, and its exit code decides what follows: usually 137 or 143, which is retried by default. Defaults to the image's own.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"command": schema.ListAttribute{
				MarkdownDescription: "Program and arguments, run in the member's container without a shell: an exit code of 0 says that it is well.",
				ElementType:         types.StringType,
				Required:            true,
				Validators:          []validator.List{listvalidator.NoNullValues()},
			},
			"interval":     wait("Time between two checks, as a duration such as `10s`. Defaults to `30s`."),
			"timeout":      wait("Time after which a check that has not ended counts as failed. Defaults to `30s`."),
			"start_period": wait("Time from the start in which failed checks do not count. Defaults to none."),
			"retries": schema.Int64Attribute{
				MarkdownDescription: "Number of failed checks in a row after which the member is not well. Defaults to 3.",
				Optional:            true,
			},
		},
	}
}

func modeAttribute(fallback string) schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: "Permissions of the file, in octal digits. Defaults to `\"" + fallback + "\"`.",
		Optional:            true,
		Validators:          []validator.String{resourcekit.IsMode()},
	}
}
