package image

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	imageref "github.com/distribution/reference"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

//go:embed resource.md
var resourceDescription string

// Schema is the schema of trainyard_image.
func Schema(ctx context.Context, engines []string) schema.Schema {
	return schema.Schema{
		MarkdownDescription: strings.TrimSpace(resourceDescription),
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "`<cluster>/<name>`.",
				Computed:            true,
			},
			"cluster": resourcekit.ClusterReferenceAttribute(engines),
			"name": schema.StringAttribute{
				MarkdownDescription: "Reference of the image on the hosts: `[registry/]name[:tag]`. The tag defaults " +
					"to `latest`. Forces replacement.",
				Required:      true,
				Validators:    []validator.String{isName{}},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"archive": schema.StringAttribute{
				MarkdownDescription: "File to load the image from: an uncompressed docker-archive, as written by " +
					"`docker save`. If it has several images, the one called `name` is loaded. Conflicts with `build`.",
				Optional: true,
				Validators: []validator.String{
					stringvalidator.LengthAtLeast(1), stringvalidator.ConflictsWith(resourcekit.Beside("build")),
				},
			},
			"build": schema.SingleNestedAttribute{
				MarkdownDescription: "How to build the image. It is built on the first of the hosts, by Docker's " +
					"legacy builder, without BuildKit instructions such as `RUN --mount`. The images in `FROM` and " +
					"`COPY --from` are pulled there, with the provider's credentials: the host gets only those for " +
					"registries that the Dockerfile names, including through `ARG` variables (`${NAME:-default}`). " +
					"Conflicts with `archive`.",
				Optional: true,
				Attributes: map[string]schema.Attribute{
					"context": schema.StringAttribute{
						MarkdownDescription: "Build context: the folder that the Dockerfile copies from. Its " +
							"`.dockerignore` applies.",
						Required:   true,
						Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
					},
					"dockerfile": schema.StringAttribute{
						MarkdownDescription: "Path of the Dockerfile in the build context. Defaults to `" +
							defaultDockerfile + "`.",
						Optional:   true,
						Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
					},
					"target": schema.StringAttribute{
						MarkdownDescription: "Stage to build. Defaults to the last one.",
						Optional:            true,
						Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
					},
					"args": schema.MapAttribute{
						MarkdownDescription: "Build arguments by name, for `ARG` instructions. Don't pass secrets: " +
							"they can be read in the image's history. Defaults to none.",
						Optional:    true,
						ElementType: types.StringType,
						Validators:  []validator.Map{mapvalidator.NoNullValues()},
					},
				},
			},
			"image_id": schema.StringAttribute{
				MarkdownDescription: "Digest of the image's layers and configuration, `sha256:…`, for a group's " +
					"`image`. It is the same in Docker's own image store and in containerd's, unlike the ID in " +
					"`docker image ls`. " +
					"If hosts of several platforms pulled the image, its name with the digest of the " +
					"multi-platform image.",
				Computed: true,
			},
			"source_hash": schema.StringAttribute{
				MarkdownDescription: "Digest of the archive, or of everything that the image is built from. Null if " +
					"the image is pulled.",
				Computed: true,
			},
			"hosts": schema.MapAttribute{
				MarkdownDescription: "What each host has under that name: `image_id`, or the ID of another image. A " +
					"host without one is not listed. The next apply corrects every host that does not have `image_id`.",
				Computed:    true,
				ElementType: types.StringType,
			},
			"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout,
				"It covers the build and the copy to all hosts.", ""),
		},
	}
}

// isName validates the name of an image: a reference, but no ID.
type isName struct{}

var _ validator.String = isName{}

func (isName) Description(context.Context) string { return "a name of an image" }

func (v isName) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (isName) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if _, err := parseName(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, invalidName, err.Error())
	}
}

const invalidName = "Invalid image name"

// parseName parses a reference as docker does, and completes its tag.
func parseName(name string) (imageref.Named, error) {
	const form = "; write it as [registry/]name[:tag], such as \"trainer:1.2\""
	parsed, err := imageref.ParseNormalizedNamed(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a valid image name: %w%s", name, err, form)
	}
	if strings.HasPrefix(name, "sha256:") {
		return nil, fmt.Errorf("%q is the ID of an image, not a name%s", name, form)
	}
	return imageref.TagNameOnly(parsed), nil
}

// checkName returns an error if an image to load or build is named by a digest, which only a registry assigns.
func checkName(name types.String, at path.Path) error {
	parsed, err := parseName(name.ValueString())
	if err != nil {
		return nil //nolint:nilerr // the attribute's own validator reports it
	}
	if digested, ok := parsed.(imageref.Digested); ok {
		return fmt.Errorf("%q names the image by its digest %s, which only an image from a registry has: leave %s "+
			"out to have it pulled, or give the image a tag", name.ValueString(), digested.Digest(), at)
	}
	return nil
}
