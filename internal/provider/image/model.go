package image

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/imagesource"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

const (
	// defaultTimeout limits each operation on an image.
	defaultTimeout = 30 * time.Minute
	// defaultDockerfile is the default path of the Dockerfile.
	defaultDockerfile = "Dockerfile"
)

// Model is trainyard_image.
type Model struct {
	ID         types.String                 `tfsdk:"id"`
	Cluster    resourcekit.ClusterReference `tfsdk:"cluster"`
	Name       types.String                 `tfsdk:"name"`
	Archive    types.String                 `tfsdk:"archive"`
	Build      *BuildModel                  `tfsdk:"build"`
	ImageID    types.String                 `tfsdk:"image_id"`
	SourceHash types.String                 `tfsdk:"source_hash"`
	Hosts      types.Map                    `tfsdk:"hosts"`
	Timeouts   timeouts.Value               `tfsdk:"timeouts"`
}

// BuildModel is how an image is built.
type BuildModel struct {
	Context    string            `tfsdk:"context"`
	Dockerfile *string           `tfsdk:"dockerfile"`
	Target     *string           `tfsdk:"target"`
	Args       map[string]string `tfsdk:"args"`
}

// InCluster returns the cluster that it belongs to.
func (m Model) InCluster() resourcekit.ClusterReference { return m.Cluster }

// Limits returns the configured timeouts.
func (m Model) Limits() timeouts.Value { return m.Timeouts }

// IdentityData returns the resource's identity.
func (m Model) IdentityData() any { return resourcekit.Identity{Cluster: m.Cluster.Name, Name: m.Name} }

// Title names the resource in errors.
func (m Model) Title() string { return fmt.Sprintf("image %q", m.Name.ValueString()) }

// resourceID returns the ID of an image resource.
func resourceID(cluster, name string) string { return cluster + "/" + name }

// source is what an image is made from, as it is on this machine.
type source struct {
	// at is the attribute for it; empty if the image is pulled.
	at path.Path
	// hash is the digest of the source, and id that of the image if known.
	hash, id types.String
	archive  func() (io.ReadCloser, error)
	build    *engine.ImageBuild
}

// source reads what the image is made from. An error is about the attribute that is returned with it.
func (m Model) source() (source, error) {
	switch {
	case !m.Archive.IsNull():
		source := source{at: path.Root("archive")}
		archive, err := imagesource.OpenArchive(m.Archive.ValueString(), m.Name.ValueString())
		source.hash, source.id, source.archive = types.StringValue(archive.Digest), types.StringValue(archive.Content),
			archive.Untagged
		return source, err
	case m.Build != nil:
		source := source{at: path.Root("build"), id: types.StringUnknown()}
		build := m.Build.expand()
		digest, err := build.Digest()
		if err != nil {
			return source, err
		}
		bases, err := build.Bases()
		source.hash = types.StringValue(digest)
		source.build = &engine.ImageBuild{
			Context: build.Tar, Dockerfile: filepath.ToSlash(build.Dockerfile), Target: build.Target, Args: build.Args,
			Bases: bases, Source: digest,
		}
		return source, err
	}
	return source{hash: types.StringNull(), id: types.StringUnknown()}, nil
}

func (b BuildModel) expand() imagesource.Build {
	build := imagesource.Build{
		Context: b.Context, Dockerfile: defaultDockerfile, Target: resourcekit.Value(b.Target), Args: b.Args,
	}
	if b.Dockerfile != nil {
		build.Dockerfile = *b.Dockerfile
	}
	return build
}

// imageHosts returns what each host has under the name of an image: image_id if it is the image itself, even on hosts
// of other platforms. A host that is down keeps its last value.
func imageHosts(found map[string]engine.Image, id string, prior types.Map) types.Map {
	hosts, before := map[string]string{}, resourcekit.TextsIn(prior)
	for host, image := range found {
		had, known := before[host]
		switch {
		case image.Away && known:
			hosts[host] = had
		case image.Away:
		case image.Is(id):
			hosts[host] = id
		default:
			hosts[host] = image.ID
		}
	}
	return resourcekit.StringMap(hosts)
}
