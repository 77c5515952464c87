package spec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// The kinds of objects that members have as files.
const (
	KindFile   = "file"
	KindSecret = "secret"
)

// labelVersion is the version of a secret.
const labelVersion = LabelPrefix + "version"

// attachment is a file that a member has.
type attachment struct {
	// object is the name of the object that holds it.
	object string
	target string
	mode   domain.FileMode
}

// configFiles returns the files of a specification that config objects hold, and the objects.
func configFiles(spec domain.MemberSpec) ([]attachment, []swarm.ConfigSpec) {
	var files []attachment
	var objects []swarm.ConfigSpec
	add := func(name, content, target string, mode domain.FileMode) {
		object := configObject(spec, name, content)
		files = append(files, attachment{object.Name, target, mode})
		objects = append(objects, object)
	}
	for _, file := range spec.Files {
		add(file.Name, file.Content, fileTarget(file.Name), domain.DefaultConfigMode)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Container.Configs)) {
		file := spec.Container.Configs[name]
		add(name, file.Content, file.Target, cmp.Or(file.Mode, domain.DefaultConfigMode))
	}
	return files, objects
}

// fileTarget returns the path at which members have a file of their specification.
func fileTarget(name string) string { return path.Join(domain.FilesDir, name) }

// configObject returns the config object for a file of a group. Other content makes it another object.
func configObject(spec domain.MemberSpec, name, content string) swarm.ConfigSpec {
	sum := sha256.Sum256([]byte(content))
	digest := hex.EncodeToString(sum[:])
	return swarm.ConfigSpec{
		Annotations: swarm.Annotations{
			Name: ObjectName(spec.Cluster, KindFile, spec.Group, name, digest[:2*digestBytes]),
			Labels: map[string]string{
				LabelCluster: spec.Cluster, LabelGroup: spec.Group, LabelKind: KindFile, LabelName: name,
			},
		},
		Data: []byte(content),
	}
}

// Configs returns the config objects that specifications need, each once, sorted by name.
func Configs(specs []domain.MemberSpec) []swarm.ConfigSpec {
	byName := map[string]swarm.ConfigSpec{}
	for _, spec := range specs {
		_, objects := configFiles(spec)
		for _, object := range objects {
			byName[object.Name] = object
		}
	}
	return slices.SortedFunc(maps.Values(byName),
		func(a, b swarm.ConfigSpec) int { return cmp.Compare(a.Name, b.Name) })
}

// Secret is a secret that specifications need.
type Secret struct {
	Role, Name string
	// Object has the value if that is available.
	Object swarm.SecretSpec
}

// secretObject returns the secret object for a version of a role's secret, without its value.
func secretObject(spec domain.MemberSpec, name, version string) swarm.SecretSpec {
	return swarm.SecretSpec{Annotations: swarm.Annotations{
		Name: ObjectName(spec.Cluster, KindSecret, spec.Group, spec.Role, name, version),
		Labels: map[string]string{
			LabelCluster: spec.Cluster, LabelGroup: spec.Group, LabelKind: KindSecret, LabelRole: spec.Role,
			LabelName: name, labelVersion: version,
		},
	}}
}

// Secrets returns the secret objects that specifications need, each once, sorted by name.
func Secrets(specs []domain.MemberSpec) []Secret {
	byName := map[string]Secret{}
	for _, spec := range specs {
		for name, file := range spec.Container.Secrets {
			object := secretObject(spec, name, file.Version)
			object.Data = spec.Secrets[spec.Role][name]
			byName[object.Name] = Secret{Role: spec.Role, Name: name, Object: object}
		}
	}
	return slices.SortedFunc(maps.Values(byName),
		func(a, b Secret) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
}

// secretFiles returns the files of a specification that secret objects hold.
func secretFiles(spec domain.MemberSpec) []attachment {
	var files []attachment
	for _, name := range slices.Sorted(maps.Keys(spec.Container.Secrets)) {
		file := spec.Container.Secrets[name]
		files = append(files, attachment{
			secretObject(spec, name, file.Version).Name, file.Path(name), cmp.Or(file.Mode, domain.DefaultSecretMode),
		})
	}
	return files
}

// IsAttachment reports whether an object was made for members of a cluster's group, or of any if group is empty. It
// goes by the object's labels or, if somebody removed them, by its name; a shortened name is not recognised.
func IsAttachment(a swarm.Annotations, cluster, kind, group string) bool {
	prefix := objectPrefix + cluster + "." + kind + "."
	want := map[string]string{LabelCluster: cluster, LabelKind: kind}
	if group != "" {
		prefix += group + "."
		want[LabelGroup] = group
	}
	labelled, contradicted := true, false
	for key, value := range want {
		labelled = labelled && a.Labels[key] == value
		contradicted = contradicted || a.Labels[key] != "" && a.Labels[key] != value
	}
	return labelled || !contradicted && strings.HasPrefix(a.Name, prefix)
}

// DeclaredSecrets returns the names of the secret objects that a group declares.
func DeclaredSecrets(g domain.Group) map[string]bool {
	names := map[string]bool{}
	for _, role := range g.RoleNames() {
		container := g.EffectiveTemplate(role).Container
		if container == nil {
			continue
		}
		for name, file := range container.Secrets {
			names[secretObject(domain.MemberSpec{Cluster: g.Cluster, Group: g.Name, Role: role}, name,
				file.Version).Name] = true
		}
	}
	return names
}
