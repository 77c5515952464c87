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

// The kinds of objects that members find as files.
const (
	KindFile   = "file"
	KindSecret = "secret"
)

// labelVersion is that of a secret.
const labelVersion = LabelPrefix + "version"

// attachment is a file that a member finds.
type attachment struct {
	// object is the name of the object that holds it.
	object string
	target string
	mode   domain.FileMode
}

// configFiles returns what of a specification is held by config objects, with the objects.
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

// fileTarget returns where members find a file of their specification.
func fileTarget(name string) string { return path.Join(domain.FilesDir, name) }

// configObject returns the config object of a file of a group. Another content makes it another object.
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

// Configs returns the config objects that specifications need, each once, in the order of their names.
func Configs(specs []domain.MemberSpec) []swarm.ConfigSpec {
	byName := map[string]swarm.ConfigSpec{}
	for _, spec := range specs {
		_, objects := configFiles(spec)
		for _, object := range objects {
			byName[object.Name] = object
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b swarm.ConfigSpec) int { return cmp.Compare(a.Name, b.Name) })
}

// Secret is a secret that specifications need.
type Secret struct {
	Role, Name string
	// object has the value where that is at hand.
	Object swarm.SecretSpec
}

// secretObject returns the secret object of a version of a role's secret, without its value.
func secretObject(spec domain.MemberSpec, name, version string) swarm.SecretSpec {
	return swarm.SecretSpec{Annotations: swarm.Annotations{
		Name: ObjectName(spec.Cluster, KindSecret, spec.Group, spec.Role, name, version),
		Labels: map[string]string{
			LabelCluster: spec.Cluster, LabelGroup: spec.Group, LabelKind: KindSecret, LabelRole: spec.Role, LabelName: name, labelVersion: version,
		},
	}}
}

// Secrets returns the secret objects that specifications need, each once, in the order of their names.
func Secrets(specs []domain.MemberSpec) []Secret {
	byName := map[string]Secret{}
	for _, spec := range specs {
		for name, file := range spec.Container.Secrets {
			object := secretObject(spec, name, file.Version)
			object.Data = spec.Secrets[spec.Role][name]
			byName[object.Name] = Secret{Role: spec.Role, Name: name, Object: object}
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b Secret) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
}

// secretFiles returns what of a specification is held by secret objects.
func secretFiles(spec domain.MemberSpec) []attachment {
	var files []attachment
	for _, name := range slices.Sorted(maps.Keys(spec.Container.Secrets)) {
		file := spec.Container.Secrets[name]
		files = append(files, attachment{secretObject(spec, name, file.Version).Name, file.Path(name), cmp.Or(file.Mode, domain.DefaultSecretMode)})
	}
	return files
}

// IsAttachment reports whether an object was made for members of a cluster's group, or of any where group is empty: by
// its labels or, where somebody took them off, by its name. A name that had to be cut short does not tell.
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

// DeclaredSecrets returns the names of the objects of the secrets that a group declares.
func DeclaredSecrets(g domain.Group) map[string]bool {
	names := map[string]bool{}
	for _, role := range g.RoleNames() {
		container := g.EffectiveTemplate(role).Container
		if container == nil {
			continue
		}
		for name, file := range container.Secrets {
			names[secretObject(domain.MemberSpec{Cluster: g.Cluster, Group: g.Name, Role: role}, name, file.Version).Name] = true
		}
	}
	return names
}
