package files

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

const resourceDescription = "A folder or archive of the machine where Terraform runs, brought to every host of a cluster: the code that its groups and sweeps run.\n\n" +
	"```terraform\n" +
	"command = [\"python3\", \"${trainyard_files.code.path}/train.py\"]\n" +
	"```\n\n" +
	"`path` is content-addressed: other content has another path. When the source changes, the plan shows the new path, and the group that uses it is updated in the same apply. " +
	"The former version stays as long as a group, a sweep or a member refers to it, and is removed by the next apply of files, a group or a sweep after that.\n\n" +
	"| counts | does not count |\n" +
	"|---|---|\n" +
	"| paths, contents, the executable bit, symbolic links | times, owners, other modes, empty folders |\n\n" +
	"On the hosts the files belong to the user who runs members, are for this user alone, and are read-only: write results elsewhere. " +
	"A file that is altered or missing on a host is drift, shown in `hosts`, and mended in place by an apply. What members add to the folder (root can, such as `__pycache__`) is left alone, and is removed with the version.\n\n" +
	"A source may have 100,000 files and 4 GiB. It is read at every plan: leave out data and checkpoints. With `source = path.module`, exclude `.terraform` and `terraform.tfstate*`, which may hold secrets.\n\n" +
	"Clusters of the engines `process` and `systemd` have files; on `swarm`, put them into an image with `trainyard_image`."

// Schema is the schema of trainyard_files.
func Schema(ctx context.Context, engines []string) schema.Schema {
	return schema.Schema{
		MarkdownDescription: resourceDescription,
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "`<cluster>/<name>`.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"cluster": resourcekit.ClusterReferenceAttribute(engines),
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the files within their cluster, a DNS label: lower-case letters, digits and hyphens, a letter first. Forces replacement, which fails as long as a group or sweep refers to `path`; `create_before_destroy` avoids that.",
				Required:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"source": schema.StringAttribute{
				MarkdownDescription: "Folder, or tar, tar.gz or zip archive, such as `\"${path.module}/train\"`. Of a folder, `.git` is left out, and what its `.gitignore` files say, those of its subfolders included; " +
					"those of the folders around it don't count. Symbolic links have to stay within it.",
				Required: true,
			},
			"excludes": schema.ListAttribute{
				MarkdownDescription: "What else is left out, of a folder or an archive: patterns as in `.gitignore`, such as `*.ckpt` or `/data/`. They go before those of `.gitignore` files; `!` brings something back.",
				Optional:            true,
				ElementType:         types.StringType,
				Validators:          []validator.List{listvalidator.NoNullValues()},
			},
			"path": schema.StringAttribute{
				MarkdownDescription: "Folder of the files on each host, as an absolute path.",
				Computed:            true,
			},
			"digest": schema.StringAttribute{
				MarkdownDescription: "Digest of the files, `sha256:…`. `path` has it, too.",
				Computed:            true,
			},
			"size_bytes": schema.Int64Attribute{
				MarkdownDescription: "Size of all files together.",
				Computed:            true,
			},
			"hosts": schema.MapAttribute{
				MarkdownDescription: "What the hosts have: `digest`, or which files are altered or missing. A host without the files is not there. Wherever it is not `digest`, the next apply mends it.",
				Computed:            true,
				ElementType:         types.StringType,
			},
			"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout, "It covers the way to all hosts.", ""),
		},
	}
}
