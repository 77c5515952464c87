package group

import (
	"context"
	_ "embed"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// Description is the description of trainyard_group.
//
//go:embed resource.md
var Description string

// Schema is the schema of trainyard_group.
func Schema(ctx context.Context, engines []string) schema.Schema {
	attributes := map[string]schema.Attribute{
		"id": schema.StringAttribute{
			MarkdownDescription: "`<cluster>/<group>`.",
			Computed:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"cluster": resourcekit.ClusterReferenceAttribute(engines),
		"name": schema.StringAttribute{
			MarkdownDescription: "Name of the group within its cluster, a DNS label: lower-case letters, digits and " +
				"hyphens, starting with a letter. " +
				"The names of its members, `<group>-<role>-<index>`, must fit into 63 characters. Forces replacement.",
			Required:      true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"framework": schema.StringAttribute{
			MarkdownDescription: "Framework of the members: `none`, `tensorflow`, `tensorflow_v1`, `pytorch`, `jax`, " +
				"`mpi`, `spark` or `ray`, see above. Defaults to `none`.",
			Optional: true,
			Computed: true,
			Default:  stringdefault.StaticString(defaultFramework),
		},
		"roles": schema.MapNestedAttribute{
			MarkdownDescription: "Roles by name, each a DNS label. At least one must have at least one member.",
			Required:            true,
			Validators:          []validator.Map{mapvalidator.NoNullValues()},
			NestedObject:        schema.NestedAttributeObject{Attributes: roleAttributes()},
		},
		"completion": CompletionAttribute(),
		"restart_scope": schema.StringAttribute{
			MarkdownDescription: "What restarts after a failure that is retried: `member` (that member alone) or " +
				"`group` (all members together, as synchronous training needs). With `group`, attempts are counted " +
				"for the whole group, under the `restart` rule of the role whose member failed. Defaults to `member`.",
			Optional: true,
			Computed: true,
			Default:  stringdefault.StaticString(defaultRestartScope),
		},
		"wait_for": schema.StringAttribute{
			MarkdownDescription: "What an apply waits for: `running` (every member runs, or has already completed) " +
				"or `completed` (the group has completed). `timeouts` limits the wait. Defaults to `running`.",
			Optional: true,
			Computed: true,
			Default:  stringdefault.StaticString(defaultWaitFor),
		},
		"triggers": schema.MapAttribute{
			MarkdownDescription: "Arbitrary map of strings. Any change to it reruns the group: all members start " +
				"again, even if the group has completed or failed. Defaults to none.",
			ElementType: types.StringType,
			Optional:    true,
			Validators:  []validator.Map{mapvalidator.NoNullValues()},
		},
		"priority": schema.Int64Attribute{
			MarkdownDescription: "Priority of the group, any integer; higher is more important, as in Kubernetes. If " +
				"there is no room for the group, roles under an autoscaling policy in groups of lower priority give " +
				"way, see above: they scale in, down to the policy's `min`. The plan warns which roles will, and the " +
				"apply waits for them, within `timeouts`. Defaults to 0.",
			Optional: true,
		},
		"members": schema.MapAttribute{
			MarkdownDescription: "Address (`host:port`) of each member, by name. Interchangeable members that the " +
				"engine itself places share one. Members that are missing or not as specified are left out until the " +
				"next apply has repaired them. Members that have ended are listed. " +
				"For states, restarts and exit codes, see the data source `trainyard_group`.",
			ElementType: types.StringType,
			Computed:    true,
		},
		"placements": schema.MapAttribute{
			MarkdownDescription: "Host of each member, by the member's name. With `gpus`, the host is followed by a " +
				"space and the GPUs' UUIDs, separated by commas: `gpu1 GPU-4fa6a2a8-…,GPU-b5a3c1d2-…`. A plan shows " +
				"GPUs only where there is no choice left, see above. Interchangeable members (workers of `spark` and " +
				"`ray`) that the engine itself places, as `swarm` does, are left out.",
			ElementType: types.StringType,
			Computed:    true,
		},
		"cluster_spec": schema.MapAttribute{
			MarkdownDescription: "Addresses of the members of each role, by the role's name: `host:port,host:port`, " +
				"in the order of their indexes. Roles whose members are interchangeable " +
				"(workers of `spark` and `ray`) are left out. Empty after an incomplete apply, until one succeeds.",
			ElementType: types.StringType,
			Computed:    true,
		},
		"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout,
			"If `wait_for` is `completed`, it must cover the training itself, and defaults to `168h` (a week).",
			"It must cover the members' grace periods."),
	}
	maps.Copy(attributes, TemplateAttributes(precedenceOf("A role's own value overrides it.")))
	return schema.Schema{MarkdownDescription: strings.TrimSpace(Description), Attributes: attributes}
}

// Precedence is how the attributes of templates describe which of two settings counts.
type Precedence struct {
	// Own is the text for attributes without a special rule; "" if there is only one template.
	Own                  string
	Args, Env, Container string
}

// precedenceOf returns the texts for the templates of groups and roles.
func precedenceOf(own string) Precedence {
	return Precedence{
		Own: own, Args: own + " A role with its own `command` does not inherit the group's `args`.",
		Env: "A role's variables are added to the group's. If both set a variable, the role's value wins; both " +
			"take precedence over the framework's.",
		Container: own + " A role's `container` replaces the group's as a whole: their attributes are not merged.",
	}
}

// TemplateAttributes are the attributes for what members run.
func TemplateAttributes(precedence Precedence) map[string]schema.Attribute {
	own := func(description string) string { return strings.TrimSpace(description + " " + precedence.Own) }
	return map[string]schema.Attribute{
		"image": schema.StringAttribute{
			MarkdownDescription: own("Container image: a name with a tag or digest, such as " +
				"`registry.example.com/trainer:1.2`; the ID of an image that the hosts have (`sha256:` and 64 hex " +
				"digits); or, on `swarm`, the `image_id` of a `trainyard_image`. Required on `swarm`. On `systemd`, " +
				"members with an image run as containers in the host's Docker Engine, others as programs. No effect " +
				"on `process`."),
			Optional: true,
		},
		"command": schema.ListAttribute{
			MarkdownDescription: own("Program and its first arguments, run without a shell: an absolute path, or a " +
				"name that is looked up in `PATH`. Strings can be templates. " +
				"Required without an `image`."),
			ElementType: types.StringType,
			Optional:    true,
			Validators:  []validator.List{listvalidator.NoNullValues()},
		},
		"args": schema.ListAttribute{
			MarkdownDescription: strings.TrimSpace(
				"Arguments that follow `command`. Strings can be templates. " + precedence.Args,
			),
			ElementType: types.StringType,
			Optional:    true,
			Validators:  []validator.List{listvalidator.NoNullValues()},
		},
		"env": schema.MapAttribute{
			MarkdownDescription: "Environment variables by name. Values can be templates. " + precedence.Env + " " +
				"Names that start with `TRAINYARD_` are reserved. Values are stored in plain text, in the state and " +
				"with the cluster: pass secrets as files instead.",
			ElementType: types.StringType,
			Optional:    true,
			Validators:  []validator.Map{mapvalidator.NoNullValues()},
		},
		"working_dir": schema.StringAttribute{
			MarkdownDescription: own("Working directory of the members: the absolute path of an existing folder, on " +
				"the host or in the image. Without one, containers start in their image's working directory, and " +
				"other members in a folder of their own, which `process` keeps in its state directory and `systemd` " +
				"in the cluster's directory on the host."),
			Optional: true,
		},
		"mounts": schema.ListNestedAttribute{
			MarkdownDescription: own("Storage for the members: files and folders of the host, volumes of its Docker " +
				"Engine, or memory. Members without a container, on `process` and `systemd`, see the host's files in " +
				"place, so they accept only bind mounts whose source and target are the same."),
			Optional:   true,
			Validators: []validator.List{listvalidator.NoNullValues()},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"type": schema.StringAttribute{
					MarkdownDescription: "`bind` (a file or folder of the host), `volume` (created on the host when " +
						"first needed, and kept) or `tmpfs` (memory, gone with the member). Defaults to `bind`.",
					Optional: true,
				},
				"source": schema.StringAttribute{
					MarkdownDescription: "Absolute path on the host for `bind`, name of the volume for `volume`. " +
						"Omit for `tmpfs`.",
					Optional: true,
				},
				"target": schema.StringAttribute{
					MarkdownDescription: "Absolute path at which members see the mount.",
					Required:            true,
				},
				"read_only": schema.BoolAttribute{
					MarkdownDescription: "Whether the mount is read-only. Not enforced without a container. Defaults " +
						"to `false`.",
					Optional: true,
				},
				"size_mib": schema.Int64Attribute{
					MarkdownDescription: "Maximum size of a `tmpfs`, in MiB. Defaults to no limit other than the " +
						"host's memory.",
					Optional: true,
				},
				"driver": schema.SingleNestedAttribute{
					MarkdownDescription: "Volume driver that creates the `volume` on a host that has none of that " +
						"name. An existing volume stays as it is. Defaults to the engine's own driver. " +
						"For an NFS export: `{ name = \"local\", options = { type = \"nfs\", o = \"addr=nas,rw\", " +
						"device = \":/export/data\" } }`.",
					Optional: true,
					Attributes: map[string]schema.Attribute{
						"name": schema.StringAttribute{
							MarkdownDescription: "Name of the volume driver, such as `local`, which every engine has.",
							Required:            true,
						},
						"options": schema.MapAttribute{
							MarkdownDescription: "Driver options by name. Stored in plain text, in the state and " +
								"with the cluster. Defaults to none.",
							ElementType: types.StringType,
							Optional:    true,
							Validators:  []validator.Map{mapvalidator.NoNullValues()},
						},
					},
				},
			}},
		},
		"container": containerAttribute(precedence.Container),
	}
}

func roleAttributes() map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"replicas": schema.Int64Attribute{
			MarkdownDescription: "Number of members, 0 to 10,000. If omitted, Terraform does not manage the number: " +
				"it starts at 1 and stays as it is, or as an autoscaling policy for the role sets it. " +
				"That is not drift. A plan that changes the group for another reason shows `members`, `placements` " +
				"and `cluster_spec` as `(known after apply)`, unless the framework allows at most one member " +
				"of the role.",
			Optional: true,
		},
		"on_scale": schema.StringAttribute{
			MarkdownDescription: "What happens to the group's other members when the number of this role's members " +
				"changes, by `replicas` or a policy: `restart` (all of them restart, with the addresses of the " +
				"current members) or `none` (they keep running with the addresses they know; members that start get " +
				"all addresses). `jax` doesn't allow `none`. Changing this attribute itself restarts all members " +
				"once. Defaults to `restart`.",
			Optional: true,
		},
		"port": schema.Int64Attribute{
			MarkdownDescription: "First port of the members, 1 to 65535. If members share their host's address, as " +
				"on `process` and `systemd`, those on the same address get this port and the following ones, by " +
				"index, and keep theirs while others come and go. " +
				"If omitted, each member gets a free port during the apply (20000 to 29999 if members share the " +
				"address) and keeps it.",
			Optional: true,
		},
		"resources":    ResourcesAttribute("member"),
		"gpus":         GPUsAttribute("member", roleGPUs),
		"placement":    PlacementAttribute(rolePlacement, roleStrategies),
		"exit_codes":   ExitCodesAttribute("How `restart.condition = \"on_failure\"` treats exit codes."),
		"grace_period": GracePeriodAttribute("member"),
		"restart": schema.SingleNestedAttribute{
			MarkdownDescription: "When to restart a member that has ended.",
			Optional:            true,
			Attributes: map[string]schema.Attribute{
				"condition": schema.StringAttribute{
					MarkdownDescription: "`never`, `on_failure` (after an exit code other than 0 that is not among " +
						"`exit_codes.final`) or `always` (after any exit code, 0 included). Defaults to `on_failure`.",
					Optional: true,
				},
				"max_attempts": schema.Int64Attribute{
					MarkdownDescription: "Maximum number of restarts; 0 means no limit. Defaults to 6 for " +
						"`on_failure`, and to 0 for `always`.",
					Optional: true,
				},
				"delay": schema.StringAttribute{
					MarkdownDescription: "Delay before the first restart, such as `500ms`. It doubles with each " +
						"further restart, up to five minutes. Defaults to `1s`.",
					Validators:    []validator.String{resourcekit.IsDuration()},
					PlanModifiers: []planmodifier.String{resourcekit.SameDuration()},
					Optional:      true,
				},
			},
		},
		"update": schema.SingleNestedAttribute{
			MarkdownDescription: "How a change is rolled out to running members. By default, to all at once: the " +
				"members of a synchronous job have to agree on who takes part. " +
				"For independent replicas, update a few at a time to keep serving. New members, members that are " +
				"down, and reruns (`triggers`) are not held back.",
			Optional: true,
			Attributes: map[string]schema.Attribute{
				"parallelism": schema.Int64Attribute{
					MarkdownDescription: "Number of members updated at a time, in index order. Without a `delay`, " +
						"the next member follows as soon as one of them runs; with a `delay`, the next batch follows " +
						"once all of them have run for that long. Roles are updated one after another. 0, the " +
						"default, means all at once.",
					Optional: true,
				},
				"delay": schema.StringAttribute{
					MarkdownDescription: "Time between a batch of updated members running and the next batch, such " +
						"as `30s`. A member that fails in this time counts as failed by the update. Defaults to `0s`.",
					Validators:    []validator.String{resourcekit.IsDuration()},
					PlanModifiers: []planmodifier.String{resourcekit.SameDuration()},
					Optional:      true,
				},
				"on_failure": schema.StringAttribute{
					MarkdownDescription: "What happens when a member fails for good while the apply waits for it to " +
						"run: `pause` (the other members stay as they are until the next apply), `continue` (they " +
						"are updated anyway) or `rollback` (the whole group returns to the specification that it " +
						"last ran with). " +
						"In each case the apply fails and names the member. Defaults to `pause`.",
					Optional: true,
				},
			},
		},
	}
	maps.Copy(attributes, TemplateAttributes(precedenceOf("Defaults to the group's.")))
	return attributes
}

// CompletionAttribute is the attribute for when a group has completed.
func CompletionAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "When the group counts as completed, and what happens then. Omitted attributes default " +
			"to what is usual for the framework.",
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"when": schema.StringAttribute{
				MarkdownDescription: "Which members must end with exit code 0 to complete the group: the `chief`, " +
					"`all` members of `roles`, `any` of them, or `never` (a service). The chief is member 0 of the " +
					"first of `roles` that has members, or of the framework's. " +
					"Defaults to `all` for `none`, `pytorch` and `jax`; otherwise to `chief`, or to `never` if there " +
					"is no chief.",
				Optional: true,
			},
			"roles": schema.ListAttribute{
				MarkdownDescription: "Names of the roles that count. Defaults to those whose members end by " +
					"themselves, which excludes parameter servers and the like.",
				ElementType: types.StringType,
				Optional:    true,
				Validators:  []validator.List{listvalidator.NoNullValues()},
			},
			"deadline": schema.StringAttribute{
				MarkdownDescription: "Maximum time from the start of the first member until the group completes, " +
					"restarts included: a duration such as `12h`. After that, all members are stopped, regardless of " +
					"`stop_rest`, and the group has failed. Defaults to none.",
				Validators:    []validator.String{resourcekit.IsDuration()},
				PlanModifiers: []planmodifier.String{resourcekit.SameDuration()},
				Optional:      true,
			},
			"stop_rest": schema.BoolAttribute{
				MarkdownDescription: "Whether members that are still running are stopped once the group has " +
					"completed or failed. Defaults to `true`.",
				Optional: true,
			},
		},
	}
}
