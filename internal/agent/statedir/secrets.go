//go:build linux

package statedir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// secret returns the file with the value of one version of a member's secret.
func (d Dir) secret(spec domain.MemberSpec, name string) string {
	version := sha256.Sum256([]byte(spec.Container.Secrets[name].Version))
	return d.Path(secrets, spec.Group, spec.Name, name+"."+hex.EncodeToString(version[:8]))
}

// WriteSecrets stores the values of a member's secrets that its specification contains. Other versions stay, as a
// member may run with them.
func (d Dir) WriteSecrets(spec domain.MemberSpec) error {
	for name := range spec.Container.Secrets {
		content, given := spec.Secrets[spec.Role][name]
		if !given {
			continue
		}
		path := d.secret(spec, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := replace(path, content, ownerOnly, Durable); err != nil {
			return err
		}
	}
	return nil
}

// ReadSecret returns the value of a member's secret: [engine.ErrNotFound] if it was not brought here.
func (d Dir) ReadSecret(spec domain.MemberSpec, name string) ([]byte, error) {
	content, err := os.ReadFile(d.secret(spec, name))
	if os.IsNotExist(err) {
		err = fmt.Errorf("the content of secret %q: %w on this host", name, engine.ErrNotFound)
	}
	return content, err
}

// login returns the file with the registry credentials for a member's image.
func (d Dir) login(spec domain.MemberSpec) string {
	image := sha256.Sum256([]byte(spec.Image))
	// no secret's name begins with a dot
	return d.Path(secrets, spec.Group, spec.Name, ".registry."+hex.EncodeToString(image[:8]))
}

// WriteRegistryLogin stores the registry credentials for a member's image, and replaces earlier ones.
func (d Dir) WriteRegistryLogin(spec domain.MemberSpec, auth string) error {
	path := d.login(spec)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replace(path, []byte(auth), ownerOnly, Durable)
}

// ReadRegistryLogin returns the registry credentials for a member's image; empty if none were brought here.
func (d Dir) ReadRegistryLogin(spec domain.MemberSpec) (string, error) {
	auth, err := os.ReadFile(d.login(spec))
	if os.IsNotExist(err) {
		return "", nil
	}
	return string(auth), err
}

// PruneSecrets deletes the secret values and registry credentials that no specification of a group's members refers to.
func (d Dir) PruneSecrets(group string) error {
	members, err := os.ReadDir(d.Path(secrets, group))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, member := range members {
		used := map[string]bool{}
		for _, folder := range []string{Staged, Specs} {
			spec, err := Read[domain.MemberSpec](d.Document(folder, member.Name()))
			if err != nil && !errors.Is(err, engine.ErrNotFound) {
				return err
			}
			for name := range spec.Container.Secrets {
				used[d.secret(spec, name)] = true
			}
			used[d.login(spec)] = true
		}
		if err := keepOnly(d.Path(secrets, group, member.Name()), used); err != nil {
			return err
		}
	}
	_ = os.Remove(d.Path(secrets, group)) // fails if something is left in it
	return nil
}

// keepOnly deletes the files of a folder except some, and the folder if none is left.
func keepOnly(folder string, used map[string]bool) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, entry := range entries {
		if path := filepath.Join(folder, entry.Name()); !used[path] {
			if err := Delete(path); err != nil {
				return err
			}
		}
	}
	_ = os.Remove(folder) // fails if something is left in it
	return nil
}

// forgetSecrets deletes a member's secret values and registry credentials.
func (d Dir) forgetSecrets(member string) error {
	folders, err := filepath.Glob(d.Path(secrets, "*", member))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := keepOnly(folder, nil); err != nil {
			return err
		}
		_ = os.Remove(filepath.Dir(folder)) // fails if another member has some
	}
	return nil
}
