//go:build linux

package swarm_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	dockerimage "github.com/docker/docker/api/types/image"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/imagesource"
)

const theImage = "trainyard_image.trainer"

// imageLab is a swarmLab with an image.
type imageLab struct {
	*swarmLab
	// image is the image's name, which no other lab has.
	image string
	// files is the folder of its sources.
	files string
}

func newImageLab(t *testing.T, engine, name string) imageLab {
	t.Helper()
	l := imageLab{newSwarmLab(t, sharedBedOf(t, engine), name), name + "/trainer:1", t.TempDir()}
	t.Cleanup(func() { l.expectImages(t.Context(), l.image) })
	return l
}

// config returns a configuration with the cluster, whose hosts have addresses, and the image with these attributes.
func (l imageLab) config(attributes string, parts ...string) string {
	hosts := map[string]string{}
	for _, node := range l.bed.Nodes {
		hosts[node.Name] = ""
	}
	return l.swarmLab.config(l.formed(hosts), fmt.Sprintf(`
resource "trainyard_image" "trainer" {
  cluster = trainyard_cluster.lab
  name    = %q
  %s
}
`, l.image, attributes), strings.Join(parts, "\n"))
}

// archive writes an archive of an image with one file, and returns the image's image_id.
func (l imageLab) archive(file, content string) (id string) {
	l.Helper()
	img, err := image.Build(v1.Config{}, image.FromBytes("/"+l.name, 0o644, []byte(content)))
	l.must(err)
	return l.write(file, img)
}

// memberArchive is archive with the members' program.
func (l imageLab) memberArchive(file string) (id string) {
	l.Helper()
	program, err := image.FromDisk("/member", acctest.Build(l, acctest.Member))
	l.must(err)
	img, err := image.Build(v1.Config{Entrypoint: []string{"/member"}}, program)
	l.must(err)
	return l.write(file, img)
}

// write writes an archive of an image, which is removed from all nodes at the end.
func (l imageLab) write(file string, img v1.Image) (id string) {
	l.Helper()
	config, err := img.ConfigFile()
	l.must(err)
	id = imagesource.ContentDigest(*config)
	var archive bytes.Buffer
	l.must(image.Write(&archive, "archived/as:another", img))
	l.must(os.WriteFile(filepath.Join(l.files, file), archive.Bytes(), 0o600))
	l.Cleanup(func() { l.forget(id) })
	return id
}

// forget removes an image from all nodes, under any name.
func (l imageLab) forget(id string) {
	l.Helper()
	ctx := context.WithoutCancel(l.Context())
	for _, node := range l.bed.Nodes {
		held, err := images.InspectImage(ctx, node.Client(), id)
		if err == nil {
			// A container may outlive its service for a while.
			acctest.EventuallyNoError(l, "an image to be used by nobody", func() error {
				_, err = node.Client().ImageRemove(ctx, held.ID, dockerimage.RemoveOptions{Force: true})
				if cerrdefs.IsConflict(err) {
					return err
				}
				return nil
			})
		}
		if err != nil && !cerrdefs.IsNotFound(err) {
			l.Error(err)
		}
	}
}

// remove removes an image name from nodes by hand, given their numbers from 0.
func (l imageLab) remove(name string, nodes ...int) {
	l.Helper()
	for _, node := range nodes {
		_, err := l.bed.Nodes[node].Client().ImageRemove(l.Context(), name, dockerimage.RemoveOptions{Force: true})
		l.must(err)
	}
}

// tag gives the members' image another name on a node, and returns its ID.
func (l imageLab) tag(node int, name string) (id string) {
	l.Helper()
	docker := l.bed.Nodes[node].Client()
	l.must(docker.ImageTag(l.Context(), memberImage, name))
	return l.imageID(memberImage)
}

// expectImages fails unless the nodes have these images under a name, or none.
func (l imageLab) expectImages(ctx context.Context, name string, want ...string) {
	l.Helper()
	var got []string
	for _, node := range l.bed.Nodes {
		held, err := images.InspectImage(context.WithoutCancel(ctx), node.Client(), name)
		if !cerrdefs.IsNotFound(err) {
			l.must(err)
			got = append(got, held.Content)
		}
	}
	if !slices.Equal(got, want) {
		l.Errorf("the nodes have %q under the name %s, want %q", got, name, want)
	}
}

// everywhere checks that all nodes have an image, in the state and in fact.
func (l imageLab) everywhere(id *string) resource.TestCheckFunc {
	return func(s *terraform.State) error {
		l.expectImages(l.Context(), l.image, *id, *id, *id)
		checks := []resource.TestCheckFunc{
			resource.TestCheckResourceAttr(theImage, "id", l.name+"/"+l.image),
			resource.TestCheckResourceAttr(theImage, "image_id", *id),
			resource.TestCheckResourceAttr(theImage, "hosts.%", "3"),
		}
		for _, node := range l.bed.Nodes {
			checks = append(checks, resource.TestCheckResourceAttr(theImage, "hosts."+node.Name, *id))
		}
		return resource.ComposeAggregateTestCheckFunc(checks...)(s)
	}
}

// on returns what a plan shows about hosts that have an image.
func (l imageLab) on(id string, nodes ...int) map[string]any {
	hosts := map[string]any{}
	for _, node := range nodes {
		hosts[l.bed.Nodes[node].Name] = id
	}
	return hosts
}

// An image from an archive is loaded onto all hosts, and stays there.
func TestAccImageArchive(t *testing.T) { onEnginesAtNight(t, testAccImageArchive) }

func testAccImageArchive(t *testing.T, engine string) {
	l := newImageLab(t, engine, "imgarchive")
	first, second := l.archive("trainer.tar", "first"), l.archive("next.tar", "second")
	config := l.config(fmt.Sprintf("archive = %q", filepath.Join(l.files, "trainer.tar")))
	unknown := plancheck.ExpectUnknownValue(theImage, tfjsonpath.New("hosts"))
	mended := func(before map[string]any) resource.ConfigPlanChecks {
		return acceptance.Planned(
			plancheck.ExpectResourceAction(theImage, plancheck.ResourceActionUpdate),
			acceptance.Shows(theImage, acceptance.Attribute("image_id"), first, first),
			showsBefore{theImage, "hosts", before},
			unknown,
		)
	}
	another := l.on(first, 0, 1, 2)
	l.test(
		resource.TestStep{
			Config: config,
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectKnownValue(theImage, tfjsonpath.New("image_id"), knownvalue.StringExact(first)),
				unknown,
			),
			Check: l.everywhere(&first), // and the next plan is empty, as after each step
		},
		resource.TestStep{
			PreConfig:        func() { l.remove(l.image, 1) },
			Config:           config,
			ConfigPlanChecks: mended(l.on(first, 0, 2)),
			Check:            l.everywhere(&first),
		},
		resource.TestStep{
			// What the plan has shown is replaced.
			PreConfig:        func() { another["node3"] = l.tag(2, l.image) },
			Config:           config,
			ConfigPlanChecks: mended(another),
			Check:            l.everywhere(&first),
		},
		resource.TestStep{
			PreConfig: func() {
				content, err := os.ReadFile(filepath.Join(l.files, "next.tar"))
				l.must(err)
				l.must(os.WriteFile(filepath.Join(l.files, "trainer.tar"), content, 0o600))
			},
			Config: config,
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectResourceAction(theImage, plancheck.ResourceActionUpdate),
				acceptance.Shows(theImage, acceptance.Attribute("image_id"), first, second),
				unknown,
			),
			Check: l.everywhere(&second),
		},
		resource.TestStep{
			PreConfig: func() { l.remove(l.image, 0, 1, 2) },
			Config:    config,
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectResourceAction(theImage,
				plancheck.ResourceActionCreate)),
			Check: l.everywhere(&second),
		},
	)
	l.expectImages(t.Context(), "archived/as:another") // the name in the archive was not requested
}

// showsBefore checks that the plan shows this as the current value of an attribute.
type showsBefore struct {
	resource, attribute string
	want                map[string]any
}

func (s showsBefore) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	resp.Error = fmt.Errorf("the plan has no %s", s.resource)
	for _, change := range req.Plan.ResourceChanges {
		if change.Address == s.resource {
			before, err := tfjsonpath.Traverse(change.Change.Before, tfjsonpath.New(s.attribute))
			if err == nil {
				err = acceptance.Differences(any(s.want), before)
			}
			resp.Error = err
		}
	}
}

// Images of others under the name are left alone.
func TestAccImageTaken(t *testing.T) { onEnginesAtNight(t, testAccImageTaken) }

func testAccImageTaken(t *testing.T, engine string) {
	l := newImageLab(t, engine, "imgtaken")
	ours := l.archive("trainer.tar", "ours")
	config := l.config(fmt.Sprintf("archive = %q", filepath.Join(l.files, "trainer.tar")))
	theirs := l.tag(1, l.image)
	l.test(
		resource.TestStep{
			Config: config,
			ExpectError: acceptance.Says(l.image, `is already the name of another image: host node2 has `+theirs,
				`Nothing was changed. Give `+ours+` another name or tag, or remove the other image`),
		},
		resource.TestStep{
			PreConfig: func() {
				held, err := images.InspectImage(t.Context(), l.bed.Nodes[1].Client(), memberImage)
				l.must(err)
				l.expectImages(t.Context(), l.image, held.Content)
				l.expectImages(t.Context(), ours)
				l.remove(l.image, 1)
			},
			Config: config,
			Check:  l.everywhere(&ours),
		},
	)
}

// An image that is built is loaded onto all hosts, and members run from it. When its source changes, they restart.
func TestAccImageBuild(t *testing.T) { onEnginesAtNight(t, testAccImageBuild) }

func testAccImageBuild(t *testing.T, engine string) {
	l := newImageLab(t, engine, "imgbuild")
	write := func(name string, content []byte) { l.must(os.WriteFile(filepath.Join(l.files, name), content, 0o755)) }
	program, err := os.ReadFile(acctest.Build(t, acctest.Member))
	l.must(err)
	write("member", program)
	write("Dockerfile",
		[]byte("FROM scratch\nARG RATE\nENV RATE=$RATE\nCOPY member data /\nENTRYPOINT [\"/member\"]\n"))
	write("data", []byte("first"))
	write(".dockerignore", []byte("*.log\n"))

	workers := l.group(`
  image = trainyard_image.trainer.image_id
  roles = { worker = { replicas = 3, args = ["wait"], placement = { strategy = "spread" } } }`)
	build := l.config(fmt.Sprintf(`build = { context = %q, args = { RATE = "0.1" } }`, l.files), workers)
	var first, second string
	remember := func(id *string) resource.TestCheckFunc {
		return func(s *terraform.State) error {
			*id = s.RootModule().Resources[theImage].Primary.Attributes["image_id"]
			l.Cleanup(func() { l.forget(*id) })
			return l.everywhere(id)(s)
		}
	}
	members := []string{l.member("worker", 0), l.member("worker", 1), l.member("worker", 2)}
	each := func(mark string) (marked []string) {
		for _, member := range members {
			marked = append(marked, mark+member)
		}
		return marked
	}
	l.test(
		resource.TestStep{
			Config:           build,
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectUnknownValue(theImage, tfjsonpath.New("image_id"))),
			Check:            resource.ComposeTestCheckFunc(remember(&first), l.changes(each("+")...)),
		},
		resource.TestStep{
			// A log is not a part of the image; a host that has lost the name gets it back. No member restarts.
			PreConfig: func() {
				write("train.log", []byte("epoch 1"))
				l.remove(l.image, 2)
			},
			Config: build,
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectResourceAction(theImage,
				plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionNoop)),
			Check: resource.ComposeTestCheckFunc(l.everywhere(&first), l.changes()),
		},
		resource.TestStep{
			PreConfig: func() { write("data", []byte("second")) },
			Config:    build,
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectResourceAction(theImage,
				plancheck.ResourceActionUpdate),
				plancheck.ExpectUnknownValue(theImage, tfjsonpath.New("image_id"))),
			Check: resource.ComposeTestCheckFunc(remember(&second), l.changes(each("~")...),
				func(*terraform.State) error {
					if first == second {
						return fmt.Errorf("another source gave the same image, %s", first)
					}
					return nil
				}),
		},
		resource.TestStep{
			PreConfig:   func() { write("Dockerfile", []byte("FROM scratch\nCOPY nothing /\n")) },
			Config:      build,
			ExpectError: acceptance.Says(`Unable to update image`, `on host node1: COPY failed`, `Step 1/`),
		},
	)
}

// An import finds the image on the hosts. Its source comes from the configuration.
func TestAccImageImport(t *testing.T) { onEnginesAtNight(t, testAccImageImport) }

func testAccImageImport(t *testing.T, engine string) {
	l := newImageLab(t, engine, "imgimport")
	id := l.archive("trainer.tar", "imported")
	w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
	const required = `
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}
`
	w.Write("main.tf", required+l.config(fmt.Sprintf("archive = %q", filepath.Join(l.files, "trainer.tar"))))
	w.Must("apply", "-auto-approve")
	w.Must("state", "rm", theImage)

	acceptance.Refuses(w, acceptance.Says(`"trainer" is not the ID of an image, which is <cluster>/<name>`), "import",
		theImage, "trainer")
	command := w.Command(t.Context(), []string{"DOCKER_HOST=" + l.bed.Nodes[0].Host()}, "import", theImage,
		l.name+"/"+l.image)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("import: %v\n%s", err, output)
	}
	if state := w.Must("state", "show", theImage); !strings.Contains(state, id) ||
		strings.Contains(state, "trainer.tar") {
		t.Errorf("imported was\n%s", state)
	}
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("after the import")
	l.expectImages(t.Context(), l.image, id, id, id)
}
