package spec

import (
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestAttachments(t *testing.T) {
	spec, other := rich(), rich()
	other.Container.Configs = map[string]domain.ConfigFile{
		"train.yaml": {Content: "epochs: 4\n", Target: "/etc/train.yaml"},
	}
	other.Container.Secrets = map[string]domain.SecretFile{"token": {Version: "2"}}
	evaluator := rich()
	evaluator.Role = "evaluator"
	specs := []domain.MemberSpec{spec, other, evaluator, spec}

	var contents []string
	for _, config := range Configs(specs) {
		contents = append(contents, string(config.Data))
		if len(config.Name) > maxObjectName {
			t.Errorf("%q is too long for the name of an object", config.Name)
		}
		want := map[string]string{
			LabelCluster: "lab", LabelGroup: "mnist", LabelKind: KindFile, LabelName: config.Labels[LabelName],
		}
		if diff := cmp.Diff(want, config.Labels); diff != "" {
			t.Errorf("labels of %s (-want +got):\n%s", config.Name, diff)
		}
	}
	slices.Sort(contents)
	if want := []string{"epochs: 3\n", "epochs: 4\n", "mnist-worker-3 slots=1\n"}; !slices.Equal(contents, want) {
		t.Errorf("the config objects hold %q, want %q", contents, want)
	}

	var secrets []string
	for _, secret := range Secrets(specs) {
		secrets = append(secrets, secret.Role+" "+secret.Name+" "+secret.Object.Name)
		if secret.Object.Data != nil {
			t.Errorf("%s has a value", secret.Object.Name)
		}
	}
	want := []string{
		"evaluator token trainyard.lab.secret.mnist.evaluator.token.1",
		"worker token trainyard.lab.secret.mnist.worker.token.1",
		"worker token trainyard.lab.secret.mnist.worker.token.2",
	}
	if !slices.Equal(secrets, want) {
		t.Errorf("the secrets are %q, want %q", secrets, want)
	}

	long := rich()
	long.Group = strings.Repeat("g", 60)
	for _, secret := range Secrets([]domain.MemberSpec{long}) {
		if len(secret.Object.Name) > maxObjectName {
			t.Errorf("%q is too long for the name of an object", secret.Object.Name)
		}
	}
}

func TestIsAttachment(t *testing.T) {
	labels := func(cluster, group, kind string) map[string]string {
		return map[string]string{LabelCluster: cluster, LabelGroup: group, LabelKind: kind}
	}
	for name, c := range map[string]struct {
		annotations swarm.Annotations
		want        bool
	}{
		"ours": {
			swarm.Annotations{Name: "x", Labels: labels("lab", "mnist", KindFile)}, true,
		},
		"of another group": {
			swarm.Annotations{Name: "x", Labels: labels("lab", "other", KindFile)}, false,
		},
		"of another cluster": {
			swarm.Annotations{Name: "trainyard.lab.file.mnist.a.1", Labels: labels("home", "mnist", KindFile)}, false,
		},
		"a document": {
			swarm.Annotations{
				Name: "trainyard.lab.group.mnist.3", Labels: labels("lab", "mnist", domain.GroupKind.Name),
			},
			false,
		},
		"without labels": {swarm.Annotations{Name: "trainyard.lab.file.mnist.a.1"}, true},
		"without some labels": {swarm.Annotations{
			Name: "trainyard.lab.file.mnist.a.1", Labels: map[string]string{LabelCluster: "lab", "team": "vision"},
		}, true},
		"without labels, of other groups": {swarm.Annotations{Name: "trainyard.lab.file.mnist-2.a.1"}, false},
		"a document without labels":       {swarm.Annotations{Name: "trainyard.lab.group.mnist.3"}, false},
		"somebody else's": {
			swarm.Annotations{Name: "train.yaml", Labels: map[string]string{"team": "vision"}}, false,
		},
	} {
		if got := IsAttachment(c.annotations, "lab", KindFile, "mnist"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	// Rendered objects are recognised by their labels, and without them by a name that is not shortened.
	spec := rich()
	spec.Cluster = "lab"
	_, objects := configFiles(spec)
	for _, object := range objects {
		if !IsAttachment(swarm.Annotations{Name: object.Name}, "lab", KindFile, "mnist") ||
			IsAttachment(swarm.Annotations{Name: object.Name}, "lab", KindFile, "mnis") {
			t.Errorf("%s is not known by its name", object.Name)
		}
	}
	if !IsAttachment(swarm.Annotations{Name: secretObject(spec, "token", "1").Name}, "lab", KindSecret, "") {
		t.Error("a secret is not known by its name")
	}
}
