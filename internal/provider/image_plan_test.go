package provider

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/imagesource"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/image"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// imageEngine is an engine whose hosts keep images.
type imageEngine struct {
	*providertest.Stub
	// found is what the hosts have under the name, and findErr the error of reading that.
	found   map[string]engine.Image
	findErr error
	// provided are the images that should be brought to hosts, and provide does that; if nil, all hosts of the
	// cluster have them afterwards.
	provided []engine.ImageSpec
	provide  func(engine.ImageSpec) error
	left     map[string]string
}

// known returns an image whose ID on every host is its content digest.
func known(content string) engine.Image { return engine.Image{ID: content, Content: content} }

// imageEngineOf returns the engine of a cluster of these hosts.
func imageEngineOf(hosts ...string) *imageEngine {
	lab := providertest.LabOf(hosts...)
	lab.Spec.Engine = "swarm"
	return &imageEngine{Stub: providertest.Set(&providertest.Stub{}, lab)}
}

func (e *imageEngine) Snapshot() engine.Engine { return e }

func (e *imageEngine) FindImage(context.Context, string) (map[string]engine.Image, error) {
	return maps.Clone(e.found), e.findErr
}

func (e *imageEngine) ProvideImage(_ context.Context, spec engine.ImageSpec) (map[string]engine.Image, error) {
	e.provided = append(e.provided, spec)
	if e.provide != nil {
		return nil, e.provide(spec)
	}
	e.found = map[string]engine.Image{}
	for host := range e.Hosts() {
		e.found[host] = known(builtID)
		if spec.ID != "" {
			e.found[host] = known(spec.ID)
		}
	}
	return maps.Clone(e.found), nil
}

func (e *imageEngine) RemoveImage(context.Context, string, string) (map[string]string, error) {
	maps.DeleteFunc(e.found, func(host string, _ engine.Image) bool { return e.left[host] == "" })
	return e.left, nil
}

// builtID is the ID of every image that this engine builds or pulls.
const builtID = "sha256:built"

// imageLab is a run of Terraform with the image trainer:1 of the cluster lab.
type imageLab struct {
	terraform
	engine *imageEngine
}

func newImageLab(t *testing.T, hosts ...string) imageLab {
	t.Helper()
	e := imageEngineOf(hosts...)
	return imageLab{terraformOn(t, engine.Registry{"swarm": providertest.Driver(e)}), e}
}

const theImage = "trainyard_image"

// image returns the configuration of the image.
func (l imageLab) image(set map[string]tftypes.Value) map[string]tftypes.Value {
	l.t.Helper()
	reference := map[string]tftypes.Value{
		"name": providertest.Text("lab"), "engine": providertest.Text("swarm"),
		"endpoint": tftypes.NewValue(tftypes.String, nil),
	}
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{
		"name": tftypes.String, "engine": tftypes.String, "endpoint": tftypes.String,
	}}
	config := l.config(theImage,
		map[string]tftypes.Value{"name": providertest.Text("trainer:1"), "cluster": tftypes.NewValue(typ, reference)})
	maps.Copy(config, set)
	return config
}

// archive returns the configuration of an image from an archive.
func (l imageLab) archive(file string) map[string]tftypes.Value {
	l.t.Helper()
	return l.image(map[string]tftypes.Value{"archive": providertest.Text(file)})
}

// build returns the configuration of an image built from a folder.
func (l imageLab) build(folder string) map[string]tftypes.Value {
	l.t.Helper()
	return l.image(map[string]tftypes.Value{"build": l.buildValue(image.BuildModel{Context: folder})})
}

func (l imageLab) buildValue(m image.BuildModel) tftypes.Value {
	l.t.Helper()
	typ, ok := image.Schema(l.t.Context(), nil).Attributes["build"].GetType().(types.ObjectType)
	if !ok {
		l.t.Fatal("build is no object")
	}
	v, diags := types.ObjectValueFrom(l.t.Context(), typ.AttrTypes, m)
	if diags.HasError() {
		l.t.Fatal(diags)
	}
	return providertest.Raw(l.t, v)
}

// model returns the model for an image's attributes.
func (l imageLab) model(attributes map[string]tftypes.Value) (m image.Model) {
	l.t.Helper()
	s := image.Schema(l.t.Context(), []string{"swarm"})
	state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(l.t.Context()), attributes)}
	if diags := state.Get(l.t.Context(), &m); diags.HasError() {
		l.t.Fatal(diags)
	}
	return m
}

// applied plans an image and applies it.
func (l imageLab) applied(config, prior map[string]tftypes.Value) map[string]tftypes.Value {
	l.t.Helper()
	planned, diagnostics := l.plan(theImage, config, prior)
	fatalOn(l.t, nil, diagnostics)
	state, diagnostics := l.apply(theImage, config, prior, planned)
	fatalOn(l.t, nil, diagnostics)
	return state
}

// refreshed refreshes a state.
func (l imageLab) refreshed(state map[string]tftypes.Value) map[string]tftypes.Value {
	l.t.Helper()
	found, diagnostics := l.read(theImage, state)
	fatalOn(l.t, nil, diagnostics)
	return found
}

// archiveFile writes a docker-archive of a random image, and returns its path and the image's ID.
func archiveFile(t *testing.T, file string) (path, id string) {
	t.Helper()
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	if file == "" {
		file = filepath.Join(t.TempDir(), "trainer.tar")
	}
	tag, err := name.NewTag("whatever:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(file, tag, img); err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return file, imagesource.ContentDigest(*config)
}

// buildFolder returns a folder to build an image from.
func buildFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "Dockerfile"), "FROM scratch\n")
	return folder
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// onBoth returns the attribute hosts of an image that two hosts have.
func onBoth(id string) types.Map {
	return resourcekit.StringMap(map[string]string{"gpu1": id, "gpu2": id})
}

var unknownHosts = types.MapUnknown(types.StringType)

func TestPlanOfNewImage(t *testing.T) {
	file, id := archiveFile(t, "")
	l := newImageLab(t, "gpu1", "gpu2")
	for kind, test := range map[string]struct {
		config map[string]tftypes.Value
		id     types.String
		hashed bool
	}{
		"an archive": {l.archive(file), types.StringValue(id), true},
		"a build":    {l.build(buildFolder(t)), types.StringUnknown(), true},
		"a pull":     {l.image(nil), types.StringUnknown(), false},
	} {
		planned, diagnostics := l.plan(theImage, test.config, nil)
		fatalOn(t, nil, diagnostics)
		got := l.model(planned)
		if got.ID.ValueString() != "lab/trainer:1" || !got.ImageID.Equal(test.id) || !got.Hosts.IsUnknown() {
			t.Errorf("%s: planned %s, %s on %s", kind, got.ID, got.ImageID, got.Hosts)
		}
		if hashed := strings.HasPrefix(got.SourceHash.ValueString(), "sha256:"); hashed != test.hashed ||
			got.SourceHash.IsUnknown() {
			t.Errorf("%s: the hash of its source is planned as %s", kind, got.SourceHash)
		}
	}
	if len(l.engine.Calls) > 0 {
		t.Errorf("the plan of a new image calls %q", l.engine.Calls)
	}
	unknown := tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	planned, diagnostics := l.plan(theImage, l.image(map[string]tftypes.Value{"archive": unknown}), nil)
	fatalOn(t, nil, diagnostics)
	for _, attribute := range []string{"id", "image_id", "source_hash", "hosts"} {
		if planned[attribute].IsKnown() {
			t.Errorf("%s of an archive that is not known is planned as %s", attribute, planned[attribute])
		}
	}
}

func TestImagesThatCantBePlanned(t *testing.T) {
	file, _ := archiveFile(t, "")
	folder := buildFolder(t)
	text := func(name, s string) map[string]tftypes.Value {
		return map[string]tftypes.Value{name: tftypes.NewValue(tftypes.String, s)}
	}
	l := newImageLab(t, "gpu1")
	with := func(set map[string]tftypes.Value, name string) map[string]tftypes.Value {
		set["name"] = tftypes.NewValue(tftypes.String, name)
		return set
	}
	digest := "trainer@sha256:" + strings.Repeat("a", 64)
	for what, test := range map[string]struct {
		set  map[string]tftypes.Value
		says string
	}{
		"no archive":        {text("archive", "/nowhere/trainer.tar"), "no such file"},
		"no docker-archive": {text("archive", filepath.Join(folder, "Dockerfile")), "is not a docker-archive"},
		"no folder": {
			map[string]tftypes.Value{"build": l.buildValue(image.BuildModel{Context: "/nowhere"})}, "no such file",
		},
		"no Dockerfile": {
			map[string]tftypes.Value{
				"build": l.buildValue(image.BuildModel{Context: folder, Dockerfile: new("other")}),
			},
			"no such file",
		},
		"an archive and a build": {map[string]tftypes.Value{
			"archive": text("a", file)["a"], "build": l.buildValue(image.BuildModel{Context: folder}),
		}, "cannot be specified when"},
		"an archive with a digest": {with(text("archive", file), digest), "leave archive out to have it pulled"},
		"a build with a digest": {
			with(map[string]tftypes.Value{"build": l.buildValue(image.BuildModel{Context: folder})}, digest),
			"leave build out to have it pulled",
		},
		"a name that is none": {with(text("archive", file), "Trainer:1"), `"Trainer:1" is not a valid image name`},
		"an ID":               {with(map[string]tftypes.Value{}, "sha256:"+strings.Repeat("a", 64)), "not a name"},
		"no name":             {with(map[string]tftypes.Value{}, ""), "is not a valid image name"},
	} {
		config := l.image(test.set)
		resp, err := l.server.ValidateResourceConfig(t.Context(),
			&tfprotov6.ValidateResourceConfigRequest{TypeName: theImage, Config: l.object(theImage, config)})
		if err != nil {
			t.Fatal(err)
		}
		diagnostics := resp.Diagnostics
		if len(diagnostics) == 0 {
			_, diagnostics = l.plan(theImage, config, nil)
		}
		if len(diagnostics) == 0 || !strings.Contains(diagnostics[0].Detail, test.says) {
			t.Errorf("%s: got %v, want %q", what, details(diagnostics), test.says)
		}
	}
	// A pulled image may be named by digest.
	resp, err := l.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: theImage, Config: l.object(theImage, l.image(text("name", digest))),
	})
	fatalOn(t, err, resp.Diagnostics)

	tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("gpu1")))
	_, diagnostics := tf.plan(theImage, l.archive(file), nil)
	if len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Detail, `the engine "process" runs no images`) ||
		diagnostics[0].Attribute == nil {
		t.Errorf("an engine without images: %v", details(diagnostics))
	}
}

func details(diagnostics []*tfprotov6.Diagnostic) (all []string) {
	for _, d := range diagnostics {
		all = append(all, d.Summary+": "+d.Detail)
	}
	return all
}

// The source and what the hosts have determine the plan.
func TestPlanOfImage(t *testing.T) {
	file, id := archiveFile(t, "")
	other, otherID := archiveFile(t, "")
	folder := buildFolder(t)
	l := newImageLab(t, "gpu1", "gpu2")
	for what, test := range map[string]struct {
		config, changed map[string]tftypes.Value
		found           map[string]string
		id              types.String
		hosts           types.Map
	}{
		"an archive, without change": {
			config: l.archive(file), found: map[string]string{"gpu1": id, "gpu2": id}, id: types.StringValue(id),
			hosts: onBoth(id),
		},
		"an archive that a host lost": {
			config: l.archive(file), found: map[string]string{"gpu1": id}, id: types.StringValue(id),
			hosts: unknownHosts,
		},
		"another image on a host": {
			config: l.archive(file), found: map[string]string{"gpu1": id, "gpu2": "sha256:other"},
			id: types.StringValue(id), hosts: unknownHosts,
		},
		"another archive": {
			config: l.archive(file), changed: l.archive(other), found: map[string]string{"gpu1": id, "gpu2": id},
			id: types.StringValue(otherID), hosts: unknownHosts,
		},
		"a build, without change": {
			config: l.build(folder), found: map[string]string{"gpu1": builtID, "gpu2": builtID},
			id: types.StringValue(builtID), hosts: onBoth(builtID),
		},
		"a build that a host lost": {
			config: l.build(folder), found: map[string]string{"gpu1": builtID}, id: types.StringValue(builtID),
			hosts: unknownHosts,
		},
		"a build that no host has": {
			config: l.build(folder), found: map[string]string{"gpu1": "sha256:other"}, id: types.StringUnknown(),
			hosts: unknownHosts,
		},
		"a build with an argument": {config: l.build(folder), changed: l.image(map[string]tftypes.Value{
			"build": l.buildValue(image.BuildModel{Context: folder, Args: map[string]string{"A": "1"}}),
		}), found: map[string]string{"gpu1": builtID, "gpu2": builtID}, id: types.StringUnknown(), hosts: unknownHosts},
		"a pull, without change": {
			config: l.image(nil), found: map[string]string{"gpu1": builtID, "gpu2": builtID},
			id: types.StringValue(builtID), hosts: onBoth(builtID),
		},
		"a pull that no host has": {
			config: l.image(nil), found: map[string]string{"gpu1": "sha256:other"}, id: types.StringUnknown(),
			hosts: unknownHosts,
		},
		"an archive from now on": {
			config: l.image(nil), changed: l.archive(file), found: map[string]string{"gpu1": builtID, "gpu2": builtID},
			id: types.StringValue(id), hosts: unknownHosts,
		},
		"no archive any more": {
			config: l.archive(file), changed: l.image(nil), found: map[string]string{"gpu1": id, "gpu2": id},
			id: types.StringValue(id), hosts: onBoth(id),
		},
	} {
		state := l.applied(test.config, nil)
		l.engine.found = map[string]engine.Image{}
		for host, found := range test.found {
			l.engine.found[host] = known(found)
		}
		state = l.refreshed(state)
		if got := l.model(state).Hosts; !got.Equal(resourcekit.StringMap(test.found)) {
			t.Errorf("%s: the hosts are read as %s", what, got)
		}
		if test.changed == nil {
			test.changed = test.config
		}
		planned, diagnostics := l.plan(theImage, test.changed, state)
		fatalOn(t, nil, diagnostics)
		got := l.model(planned)
		if !got.ImageID.Equal(test.id) || !got.Hosts.Equal(test.hosts) {
			t.Errorf("%s: planned %s on %s, want %s on %s", what, got.ImageID, got.Hosts, test.id, test.hosts)
		}
		if test.hosts.Equal(l.model(state).Hosts) && reflect.DeepEqual(test.config, test.changed) &&
			!reflect.DeepEqual(l.model(state), got) {
			t.Errorf("%s: the plan has a change, from %+v to %+v", what, l.model(state), got)
		}
	}
}

// A host that joins the cluster by the same plan gets the image, whether or not its address is known yet.
func TestPlanOfImageForNewHost(t *testing.T) {
	file, _ := archiveFile(t, "")
	l := newImageLab(t, "gpu1")
	state := l.applied(l.archive(file), nil)
	for _, cluster := range []map[string]tftypes.Value{l.swarm(nil), l.clusterOfUnknownHosts("swarm")} {
		_, diagnostics := l.plan("trainyard_cluster", cluster, nil)
		fatalOn(t, nil, diagnostics)
		planned, diagnostics := l.plan(theImage, l.archive(file), l.refreshed(state))
		fatalOn(t, nil, diagnostics)
		if got := l.model(planned); !got.Hosts.IsUnknown() || got.ImageID.IsUnknown() {
			t.Errorf("planned %s on %s", got.ImageID, got.Hosts)
		}
	}
}

// On hosts of several platforms, an image is identified by the digest that they all pulled.
func TestImageOfSeveralPlatforms(t *testing.T) {
	const digest = "reg.example.com/trainer@sha256:all"
	l := newImageLab(t, "gpu1", "gpu2")
	both := map[string]engine.Image{
		"gpu1": {ID: "sha256:amd", Content: "sha256:amd", Digests: []string{digest}},
		"gpu2": {ID: "sha256:arm", Content: "sha256:arm", Digests: []string{digest}},
	}
	l.engine.found = both
	state := l.refreshed(l.image(nil)) // as after an import
	if got := l.model(state); got.ImageID.ValueString() != digest || !got.Hosts.Equal(onBoth(digest)) {
		t.Errorf("read as %s on %s", got.ImageID, got.Hosts)
	}
	planned, diagnostics := l.plan(theImage, l.image(nil), state)
	fatalOn(t, nil, diagnostics)
	if got := l.model(planned); !got.Hosts.Equal(onBoth(digest)) {
		t.Errorf("planned on %s", got.Hosts)
	}
	l.engine.found = map[string]engine.Image{"gpu1": both["gpu1"], "gpu2": known("sha256:other")}
	planned, diagnostics = l.plan(theImage, l.image(nil), l.refreshed(state))
	fatalOn(t, nil, diagnostics)
	if got := l.model(planned); !got.Hosts.IsUnknown() || got.ImageID.ValueString() != digest {
		t.Errorf("with another image on a host, planned %s on %s", got.ImageID, got.Hosts)
	}
}

// Unknown values of a host that is down are no change.
func TestImageOfHostThatIsAway(t *testing.T) {
	file, id := archiveFile(t, "")
	for what, found := range map[string]map[string]engine.Image{
		"one is away":   {"gpu1": known(id), "gpu2": {Away: true}},
		"both are away": {"gpu1": {Away: true}, "gpu2": {Away: true}},
	} {
		l := newImageLab(t, "gpu1", "gpu2")
		state := l.applied(l.archive(file), nil)
		l.engine.found = found
		planned, diagnostics := l.plan(theImage, l.archive(file), l.refreshed(state))
		fatalOn(t, nil, diagnostics)
		if got := l.model(planned); !got.Hosts.Equal(onBoth(id)) {
			t.Errorf("%s: planned on %s", what, got.Hosts)
		}
	}
}
