package members

import (
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// TestUnused: a group's files are removed unless a service or a staged one needs them.
func TestUnused(t *testing.T) {
	e := New(dockerapi.Swarm{Cluster: "lab"}, images.Images{}, NewMemory())
	config := func(id, group string) swarm.Config {
		return swarm.Config{ID: id, Spec: swarm.ConfigSpec{Annotations: swarm.Annotations{
			Labels: map[string]string{spec.LabelCluster: "lab", spec.LabelGroup: group, spec.LabelKind: spec.KindFile},
		}}}
	}
	secret := func(id string) swarm.Secret {
		return swarm.Secret{ID: id, Spec: swarm.SecretSpec{Annotations: swarm.Annotations{
			Labels: map[string]string{
				spec.LabelCluster: "lab", spec.LabelGroup: "mnist", spec.LabelKind: spec.KindSecret,
			},
		}}}
	}
	service := swarm.ServiceSpec{TaskTemplate: swarm.TaskSpec{ContainerSpec: &swarm.ContainerSpec{
		Configs: []*swarm.ConfigReference{{ConfigID: "used"}}, Secrets: []*swarm.SecretReference{{SecretID: "needed"}},
	}}}
	got := e.unused("mnist", nil,
		[]swarm.Config{config("used", "mnist"), config("old", "mnist"), config("other", "other")},
		[]swarm.Secret{secret("needed"), secret("former")}, []swarm.ServiceSpec{service, {}})
	if diff := cmp.Diff([]object{{id: "old"}, {id: "former", secret: true}}, got,
		cmp.AllowUnexported(object{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDeclaredSecretsStay: a role without members may get some, which need its secrets.
func TestDeclaredSecretsStay(t *testing.T) {
	e := New(dockerapi.Swarm{Cluster: "lab"}, images.Images{}, NewMemory())
	group := domain.Group{Cluster: "lab", Name: "mnist", Template: domain.Template{Container: &domain.Container{
		Secrets: map[string]domain.SecretFile{"token": {Version: "2"}},
	}}, Roles: map[string]domain.Role{"ps": {}, "worker": {Template: domain.Template{Container: &domain.Container{}}}}}
	var secrets []swarm.Secret
	for _, role := range []string{"ps", "worker"} {
		for _, version := range []string{"1", "2"} {
			container := domain.Container{Secrets: map[string]domain.SecretFile{"token": {Version: version}}}
			needed := spec.Secrets([]domain.MemberSpec{
				{Cluster: "lab", Group: "mnist", Role: role, Container: container},
			})
			secrets = append(secrets, swarm.Secret{ID: role + version, Spec: needed[0].Object})
		}
	}
	got := e.unused("mnist", spec.DeclaredSecrets(group), nil, secrets, nil)
	if diff := cmp.Diff([]object{
		{id: "ps1", secret: true}, {id: "worker1", secret: true}, {id: "worker2", secret: true},
	},
		got, cmp.AllowUnexported(object{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRelabelled(t *testing.T) {
	want := swarm.Annotations{
		Name: "a", Labels: map[string]string{spec.LabelCluster: "lab", spec.LabelKind: spec.KindFile},
	}
	for name, c := range map[string]struct {
		live    map[string]string
		changed bool
	}{
		"as it was": {
			map[string]string{spec.LabelCluster: "lab", spec.LabelKind: spec.KindFile, "team": "vision"}, false,
		},
		"one removed": {map[string]string{spec.LabelCluster: "lab", "team": "vision"}, true},
		"one changed": {
			map[string]string{spec.LabelCluster: "home", spec.LabelKind: spec.KindFile, "team": "vision"}, true,
		},
	} {
		restored, changed := relabelled(swarm.Annotations{Name: "a", Labels: c.live}, want)
		expected := map[string]string{spec.LabelCluster: "lab", spec.LabelKind: spec.KindFile, "team": "vision"}
		if diff := cmp.Diff(expected, restored.Labels); diff != "" || changed != c.changed {
			t.Errorf("%s: changed %v (-want +got):\n%s", name, changed, diff)
		}
	}
}
