package group

import (
	"context"
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
const Description = `A set of roles whose members know each other: one training job, one Spark cluster, one set of services.

Members are called ` + "`<group>-<role>-<index>`" + `, with an index from 0. An apply waits until all of them run, or until the group has completed (` + "`wait_for`" + `).
A group that has completed stays so: finished is not drift, and ` + "`triggers`" + ` are what makes it run again. Changes are made in place wherever possible, and only members whose specification changed are restarted. That includes what they are told about others: another number of ` + "`replicas`" + ` restarts all members of the group, but for roles whose members are interchangeable, or whose ` + "`on_scale`" + ` is ` + "`none`" + `.

The guides "Frameworks", "GPU pools", "Completion and restarts" and "Drift and automation" tell more.

## Frameworks

The framework decides which roles there are and what members find in their environment.

| framework | roles | environment |
|---|---|---|
| ` + "`none`" + ` | your own | only what all members get |
| ` + "`tensorflow`" + ` | ` + "`chief`, `master`, `worker`, `ps`, `evaluator`" + ` | ` + "`TF_CONFIG`" + ` |
| ` + "`tensorflow_v1`" + ` | ` + "`ps`, `worker`" + ` | ` + "`PS_HOSTS`, `WORKER_HOSTS`, `JOB_NAME`, `TASK_INDEX`" + ` |
| ` + "`pytorch`" + ` | ` + "`master`, `worker`" + ` | ` + "`MASTER_ADDR`, `MASTER_PORT`, `WORLD_SIZE`, `RANK`, `LOCAL_RANK`, and torchrun's `PET_*`" + ` |
| ` + "`jax`" + ` | ` + "`worker`" + ` | ` + "`JAX_COORDINATOR_ADDRESS`, `JAX_NUM_PROCESSES`, `JAX_PROCESS_ID`" + ` |
| ` + "`mpi`" + ` | ` + "`launcher`, `worker`" + ` | a hostfile, and the variables by which Open MPI and Hydra find it |
| ` + "`spark`" + ` | ` + "`master`, `worker`, `submit`" + ` | ` + "`SPARK_MASTER_URI`" + ` |
| ` + "`ray`" + ` | ` + "`head`, `worker`, `submit`" + ` | ` + "`RAY_ADDRESS`" + ` |

Every member gets ` + "`TRAINYARD_CLUSTER`, `_GROUP`, `_ROLE`, `_INDEX`, `_MEMBER`, `_HOST`, `_ADDRESS`, `_PORT`" + `, and ` + "`TRAINYARD_CLUSTER_SPEC`" + ` (JSON: role to list of addresses), and ` + "`CUDA_VISIBLE_DEVICES=-1`" + ` (no GPU) unless its role has ` + "`gpus`" + `, or ` + "`env`" + ` says otherwise.

## Templates

In ` + "`command`, `args`" + ` and the values of ` + "`env`" + `, a string that contains ` + "`{{`" + ` is a [template](https://pkg.go.dev/text/template), rendered for each member:
the fields ` + "`.Index`, `.Name`, `.Role`, `.Group`, `.Cluster`, `.Host`, `.Address`, `.Port`" + ` are the member's own, ` + "`.Env.NAME`" + ` is a variable of its ` + "`env`" + `, and the functions ` + "`address \"ps\" 0`, `addresses \"worker\"`, `replicas \"worker\"`, `hostname ADDRESS` and `port ADDRESS`" + ` lead to the others.
Interchangeable members (workers of ` + "`spark` and `ray`" + `) that the engine distributes itself, as ` + "`swarm`" + ` does, share their specification: they have no ` + "`.Index`, `.Name`, `.Host` or `.Address`" + ` of their own in templates, and only the engine's rules of restart: a delay that stays as it is, and no exit codes that are final.
A template that can't be rendered is an error at plan.`

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
			MarkdownDescription: "Name of the group within its cluster, a DNS label: lower-case letters, digits and hyphens, a letter first. " +
				"The names of its members, `<group>-<role>-<index>`, must fit into 63 characters. Forces replacement.",
			Required:      true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"framework": schema.StringAttribute{
			MarkdownDescription: "What the members speak: `none`, `tensorflow`, `tensorflow_v1`, `pytorch`, `jax`, `mpi`, `spark` or `ray`, see above. Defaults to `none`.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(defaultFramework),
		},
		"roles": schema.MapNestedAttribute{
			MarkdownDescription: "The roles by name, each a DNS label; at least one with at least one member.",
			Required:            true,
			Validators:          []validator.Map{mapvalidator.NoNullValues()},
			NestedObject:        schema.NestedAttributeObject{Attributes: roleAttributes()},
		},
		"completion": CompletionAttribute(),
		"restart_scope": schema.StringAttribute{
			MarkdownDescription: "Who is restarted when a member fails in a way that is retried: `member`, itself alone, or `group`, all members together, as synchronous training needs; then the attempts of the group count, by the rule of the role that failed. Defaults to `member`.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(defaultRestartScope),
		},
		"wait_for": schema.StringAttribute{
			MarkdownDescription: "What an apply waits for: `running` (every member runs, or has completed already) or `completed` (the group has completed); see `timeouts` for how long. Defaults to `running`.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(defaultWaitFor),
		},
		"triggers": schema.MapAttribute{
			MarkdownDescription: "Any strings by any names. When one of them is changed, added or removed, all members start anew, also those of a group that has completed or failed. Defaults to none.",
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.Map{mapvalidator.NoNullValues()},
		},
		"priority": schema.Int64Attribute{
			MarkdownDescription: "How important the group is beside others; any whole number, and a higher one is more important, as in Kubernetes. Where there is no room for the group, roles under a policy whose groups have a lower one give way, " +
				"down to the policy's `min`, the least important first and no more members than it takes. The plan warns who will, and the apply waits for them, within `timeouts`. Members are never restarted for it. Defaults to 0. The guide \"Autoscaling\" tells more.",
			Optional: true,
		},
		"members": schema.MapAttribute{
			MarkdownDescription: "Address (`host:port`) of each member, by its name; interchangeable members that the engine distributes itself share one. Members that are missing or not as specified are left out until the next apply has mended them; members that have ended are listed. " +
				"States, restarts and exit codes are in the data source `trainyard_group`.",
			ElementType: types.StringType,
			Computed:    true,
		},
		"placements": schema.MapAttribute{
			MarkdownDescription: "Name of the host on which each member is, by the member's name; where it has `gpus`, followed by a space and their UUIDs, joined by commas: `gpu1 GPU-4fa6a2a8-…,GPU-b5a3c1d2-…`. " +
				"A plan shows GPUs where nothing is left to choose: for members that keep theirs, and for a group that takes all of a pool, see the guide \"GPU pools\". They get just those, or the apply fails before it changes anything of the group. " +
				"Where a role leaves `replicas` out of which there can be more than one member, nobody can tell before the apply. " +
				"Interchangeable members (workers of `spark` and `ray`) that the engine distributes itself, as `swarm` does, are left out: where they are is in the data source `trainyard_group`.",
			ElementType: types.StringType,
			Computed:    true,
		},
		"cluster_spec": schema.MapAttribute{
			MarkdownDescription: "Addresses of the members of each role, by the role's name: `host:port,host:port`, in the order of their indexes. Roles whose members are interchangeable " +
				"(workers of `spark` and `ray`) are left out. It is empty after an apply that did not come to its end, until one does.",
			ElementType: types.StringType,
			Computed:    true,
		},
		"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout,
			"Where `wait_for` is `completed` it has to cover the training itself, and defaults to `168h`, a week.", "It has to cover the grace periods of the members."),
	}
	maps.Copy(attributes, TemplateAttributes(precedenceOf("A role's own takes its place.")))
	return schema.Schema{MarkdownDescription: Description, Attributes: attributes}
}

// Precedence is what the descriptions of a template's attributes say about which of two counts.
type Precedence struct {
	// Own is what those say that have nothing particular to say; "" where there is only one template.
	Own                  string
	Args, Env, Container string
}

// precedenceOf returns what the templates of a group and of its roles say.
func precedenceOf(own string) Precedence {
	return Precedence{
		Own: own, Args: own + " A role with a `command` of its own does not take the group's `args`.",
		Env:       "A role's are added to the group's; where both set a variable the role's value counts, and either counts before that of the framework.",
		Container: own + " It does so as a whole: of two `container`, no attributes are mixed.",
	}
}

// TemplateAttributes are the attributes that say what members run.
func TemplateAttributes(precedence Precedence) map[string]schema.Attribute {
	own := func(description string) string { return strings.TrimSpace(description + " " + precedence.Own) }
	return map[string]schema.Attribute{
		"image": schema.StringAttribute{
			MarkdownDescription: own("Container image: a name with a tag or digest, such as `registry.example.com/trainer:1.2`, the ID of an image that the hosts have, `sha256:` and 64 hex digits, or on `swarm` the `image_id` of a `trainyard_image`. Required on `swarm`. On `systemd`, members with one are containers of the Docker Engine of their host, and others are its programs. On `process` it has no effect."),
			Optional:            true,
		},
		"command": schema.ListAttribute{
			MarkdownDescription: own("Program and its first arguments, run without a shell: an absolute path, or a name that is looked up in `PATH`. Strings can be templates. " +
				"Needed where there is no `image`."),
			ElementType: types.StringType,
			Optional:    true,
			Validators:  []validator.List{listvalidator.NoNullValues()},
		},
		"args": schema.ListAttribute{
			MarkdownDescription: strings.TrimSpace("Arguments that follow `command`. Strings can be templates. " + precedence.Args),
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.List{listvalidator.NoNullValues()},
		},
		"env": schema.MapAttribute{
			MarkdownDescription: "Environment variables by name. Values can be templates. " + precedence.Env + " " +
				"Names that start with `TRAINYARD_` are reserved. Values are stored in plain text, in the state and with the cluster: hand over secrets as files.",
			ElementType: types.StringType,
			Optional:    true,
			Validators:  []validator.Map{mapvalidator.NoNullValues()},
		},
		"working_dir": schema.StringAttribute{
			MarkdownDescription: own("Folder in which members start: an absolute path of a folder that exists, on the host or in the image. Without one, containers start in that of their image, and other members in a folder of their own, which `process` keeps in its state directory, and `systemd` in the one of the cluster on the host."),
			Optional:            true,
		},
		"mounts": schema.ListNestedAttribute{
			MarkdownDescription: own("Storage that members see: files and folders of the host, volumes of its Docker Engine, or memory. Members without a container, on `process` and `systemd`, see the files of their host where they are, so that they take bind mounts alone, with the same source and target."),
			Optional:            true,
			Validators:          []validator.List{listvalidator.NoNullValues()},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"type": schema.StringAttribute{
					MarkdownDescription: "`bind` (a file or folder of the host), `volume` (made on the host when it is first needed, and kept) or `tmpfs` (memory, gone with the member). Defaults to `bind`.",
					Optional:            true,
				},
				"source": schema.StringAttribute{
					MarkdownDescription: "Absolute path on the host for `bind`, name of the volume for `volume`; to be left out for `tmpfs`.",
					Optional:            true,
				},
				"target": schema.StringAttribute{
					MarkdownDescription: "Absolute path that members see.",
					Required:            true,
				},
				"read_only": schema.BoolAttribute{
					MarkdownDescription: "Whether members may only read; without a container it is not enforced. Defaults to `false`.",
					Optional:            true,
				},
				"size_mib": schema.Int64Attribute{
					MarkdownDescription: "What a `tmpfs` holds at most, in MiB. Defaults to no bound but the host's memory.",
					Optional:            true,
				},
				"driver": schema.SingleNestedAttribute{
					MarkdownDescription: "Driver that makes the `volume` on a host where there is none of its name; one that is there stays as it is. Defaults to the engine's own. " +
						"For an export of NFS: `{ name = \"local\", options = { type = \"nfs\", o = \"addr=nas,rw\", device = \":/export/data\" } }`.",
					Optional: true,
					Attributes: map[string]schema.Attribute{
						"name": schema.StringAttribute{
							MarkdownDescription: "Name of the volume driver, such as `local`, which every engine has.",
							Required:            true,
						},
						"options": schema.MapAttribute{
							MarkdownDescription: "Options of the driver by name. They are stored in plain text, in the state and with the cluster. Defaults to none.",
							ElementType:         types.StringType,
							Optional:            true,
							Validators:          []validator.Map{mapvalidator.NoNullValues()},
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
			MarkdownDescription: "Number of members, 0 to 10,000. Left out, the number is not managed by Terraform: it starts at 1 and is then kept as it is, or as an autoscaling policy for the role changes it. " +
				"That is no drift; a plan that changes the group for another reason leaves `members`, `placements` and `cluster_spec` open until it is applied, unless the framework takes no more than one member of the role.",
			Optional: true,
		},
		"on_scale": schema.StringAttribute{
			MarkdownDescription: "What another number of members of this role does to the other members of the group: `restart` (all of them start anew, with the addresses of those that there are now), or `none` (they go on with the addresses that they know; " +
				"members that start find all), for frameworks whose members join and leave by themselves, and services. `jax` doesn't allow `none`. It counts for `replicas` as for a policy. Interchangeable members (workers of `spark` and `ray`) are known to nobody, and restart nobody. " +
				"A change of this attribute itself restarts all members once. Defaults to `restart`.",
			Optional: true,
		},
		"port": schema.Int64Attribute{
			MarkdownDescription: "First port of the members, 1 to 65535. Where members share the address of their host, as with `process` and `systemd`, those on one address get this port and the following ones, by index, and keep theirs while others come and go. " +
				"Left out, each member gets a free port (where they share that address: 20000 to 29999) during the apply and keeps it.",
			Optional: true,
		},
		"resources":    ResourcesAttribute("member"),
		"gpus":         GPUsAttribute("member", roleGPUs),
		"placement":    PlacementAttribute(rolePlacement, roleStrategies),
		"exit_codes":   ExitCodesAttribute("What exit codes mean to `restart.condition = \"on_failure\"`."),
		"grace_period": GracePeriodAttribute("member"),
		"restart": schema.SingleNestedAttribute{
			MarkdownDescription: "When a member that ended is started again.",
			Optional:            true,
			Attributes: map[string]schema.Attribute{
				"condition": schema.StringAttribute{
					MarkdownDescription: "`never`, `on_failure` (after an exit code other than 0 that is not among `exit_codes.final`) or `always` (after any exit code, 0 included). Defaults to `on_failure`.",
					Optional:            true,
				},
				"max_attempts": schema.Int64Attribute{
					MarkdownDescription: "Number of restarts after which the next end is final; 0 sets no bound. Defaults to 6 for `on_failure`, and to 0 for `always`.",
					Optional:            true,
				},
				"delay": schema.StringAttribute{
					MarkdownDescription: "Time between an end and the first restart, as a duration such as `500ms`; it doubles with each further one, up to five minutes. Defaults to `1s`.",
					Validators:          []validator.String{resourcekit.IsDuration()},
					PlanModifiers:       []planmodifier.String{resourcekit.SameDuration()},
					Optional:            true,
				},
			},
		},
		"update": schema.SingleNestedAttribute{
			MarkdownDescription: "How a change comes to members that run. By default to all at once: the members of a synchronous job have to agree on who takes part. " +
				"Where the members serve each for itself, some at a time keep the others at work. New members, those that have ended, and a run that begins anew (`triggers`) are not waited with.",
			Optional: true,
			Attributes: map[string]schema.Attribute{
				"parallelism": schema.Int64Attribute{
					MarkdownDescription: "Number of members that are changed at a time, in the order of their indexes; the next one follows when one of them runs, or with a `delay` the next ones when all do. Roles follow one another. 0 is as if left out: all at once.",
					Optional:            true,
				},
				"delay": schema.StringAttribute{
					MarkdownDescription: "Time between the moment in which changed members run and the change of the next ones, as a duration such as `30s`. A member that fails in the meantime counts as failed with the change. Defaults to `0s`.",
					Validators:          []validator.String{resourcekit.IsDuration()},
					PlanModifiers:       []planmodifier.String{resourcekit.SameDuration()},
					Optional:            true,
				},
				"on_failure": schema.StringAttribute{
					MarkdownDescription: "What happens when a member fails for good while the apply waits for it to run: `pause` (the other members stay as they are until the next apply), `continue` (they are changed all the same) or `rollback` (the whole group gets back the specification under which it last ran). " +
						"In each case the apply fails, and names the member. Defaults to `pause`.",
					Optional: true,
				},
			},
		},
	}
	maps.Copy(attributes, TemplateAttributes(precedenceOf("Defaults to the group's.")))
	return attributes
}

// CompletionAttribute is the attribute that says when a group is done.
func CompletionAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "When the group has completed, and what happens then. What is left out is as usual for the framework.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"when": schema.StringAttribute{
				MarkdownDescription: "Whose end with exit code 0 completes the group: that of the `chief`, of `all` members of `roles`, of `any` of them, or `never` (a service). The chief is member 0 of the first of `roles` that has members, or of the framework's. " +
					"Defaults to `all` for `none`, `pytorch` and `jax`, and else to `chief`, or to `never` where there is no chief.",
				Optional: true,
			},
			"roles": schema.ListAttribute{
				MarkdownDescription: "Names of the roles that the rule looks at. Defaults to those that end by themselves, which leaves out parameter servers and the like.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.NoNullValues()},
			},
			"deadline": schema.StringAttribute{
				MarkdownDescription: "Time from the start of the first member within which the group has to complete, restarts included, as a duration such as `12h`. After that all members are stopped, whatever `stop_rest` says, and the group has failed. Defaults to none.",
				Validators:          []validator.String{resourcekit.IsDuration()},
				PlanModifiers:       []planmodifier.String{resourcekit.SameDuration()},
				Optional:            true,
			},
			"stop_rest": schema.BoolAttribute{
				MarkdownDescription: "Whether members that still run are stopped once the group has completed or failed. Defaults to `true`.",
				Optional:            true,
			},
		},
	}
}
