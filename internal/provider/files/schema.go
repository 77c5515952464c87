package files

import (
	"context"
	_ "embed"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

//go:embed resource.md
var resourceDescription string

// Schema is the schema of trainyard_files.
func Schema(ctx context.Context, engines []string) schema.Schema {
	return schema.Schema{
		MarkdownDescription: strings.TrimSpace(resourceDescription),
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "`<cluster>/<name>`.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"cluster": resourcekit.ClusterReferenceAttribute(engines),
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the files within their cluster, a DNS label: lower-case letters, " +
					"digits and hyphens, starting with a letter, at most 63 characters. Forces replacement, which " +
					"fails as long as a group or sweep refers to `path`; `create_before_destroy` avoids that.",
				Required:      true,
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"source": schema.StringAttribute{
				MarkdownDescription: "Folder, or tar, tar.gz or zip archive, such as `\"${path.module}/train\"`. " +
					"From a folder, `.git` and whatever its `.gitignore` files list are left out. " +
					"`.gitignore` files in subfolders count, those in parent folders don't. Symbolic links must not " +
					"lead out of the source.",
				Required: true,
			},
			"excludes": schema.ListAttribute{
				MarkdownDescription: "What else to leave out of a folder or an archive: patterns as in `.gitignore`, " +
					"such as `*.ckpt` or `/data/`. They take precedence over `.gitignore` files; `!` re-includes " +
					"files. Defaults to none.",
				Optional:    true,
				ElementType: types.StringType,
				Validators:  []validator.List{listvalidator.NoNullValues()},
			},
			"path": schema.StringAttribute{
				MarkdownDescription: "Absolute path of the folder with the files on each host.",
				Computed:            true,
			},
			"digest": schema.StringAttribute{
				MarkdownDescription: "Digest of the files, `sha256:…`. It is also part of `path`.",
				Computed:            true,
			},
			"size_bytes": schema.Int64Attribute{
				MarkdownDescription: "Total size of all files, in bytes.",
				Computed:            true,
			},
			"hosts": schema.MapAttribute{
				MarkdownDescription: "What each host has: `digest`, or which files are altered or missing. A host " +
					"without the files is not listed. The next apply repairs every host that does not have `digest`.",
				Computed:    true,
				ElementType: types.StringType,
			},
			"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout, "It covers the copy to all hosts.", ""),
		},
	}
}
