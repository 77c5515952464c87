//go:build linux

package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/filestore"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// prepare creates the files for a container: on the host only root can read them, in a folder that exists as long as
// the container may.
func (i *containerInstance) prepare(facts containers.Facts) (containers.Place, error) {
	dir, spec := i.launcher.dir, i.spec
	place := containers.Place{
		Instance: i.id, Facts: facts, Variables: map[string]string{proctree.InstanceVariable: i.id},
	}
	_, err := os.Stat("/dev/infiniband")
	place.Fabric = err == nil
	if err := os.MkdirAll(i.folder, 0o700); err != nil {
		return place, err
	}
	show := func(source, target string) {
		place.Shown = append(place.Shown, containers.Shown{Source: source, Target: target})
	}
	if len(spec.Files) > 0 {
		files, err := i.writeFiles()
		if err != nil {
			return place, err
		}
		show(files, domain.FilesDir)
		show(files, dir.FilesDir(i.member)) // at the path in its environment
	}
	for name, file := range spec.Container.Configs {
		path := filepath.Join(i.folder, "config."+name)
		if err := writeAs(path, []byte(file.Content), cmp.Or(file.Mode, domain.DefaultConfigMode)); err != nil {
			return place, err
		}
		show(path, file.Target)
	}
	for name, file := range spec.Container.Secrets {
		path := filepath.Join(i.folder, "secret."+name)
		content, err := dir.ReadSecret(spec, name)
		if errors.Is(err, engine.ErrNotFound) {
			return place, &commandError{err}
		}
		if err == nil {
			err = writeAs(path, content, cmp.Or(file.Mode, domain.DefaultSecretMode))
		}
		if err != nil {
			return place, err
		}
		show(path, file.Path(name))
	}
	if content := dir.Path(statedir.Content); holdsSomething(content) {
		// Files that were brought, at the paths in configurations, readable by whichever user the image has.
		if err := (filestore.Store{Dir: content}).Open(); err != nil {
			return place, err
		}
		show(content, content)
	}
	if spec.Kept != "" {
		if err := i.keep(); err != nil {
			return place, &commandError{fmt.Errorf("its folder %q can't be created: %w", spec.Kept, err)}
		}
		place.Shown = append(place.Shown, containers.Shown{Source: spec.Kept, Target: spec.Kept, Writable: true})
	}
	return place, nil
}

func holdsSomething(folder string) bool {
	entries, err := os.ReadDir(folder)
	return err == nil && len(entries) > 0
}

// writeFiles creates the folder with the files of the specification, which every user in the container may read.
func (i *containerInstance) writeFiles() (folder string, err error) {
	folder = filepath.Join(i.folder, "files")
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // in a folder of root's
		return folder, err
	}
	for _, file := range i.spec.Files {
		if err := writeAs(filepath.Join(folder, file.Name), []byte(file.Content),
			domain.DefaultConfigMode); err != nil {
			return folder, err
		}
	}
	return folder, nil
}

// writeAs writes a file with these permissions, regardless of this process's umask.
func writeAs(path string, content []byte, mode domain.FileMode) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, os.FileMode(mode))
}

// keep creates the folder that outlives the member. It is owned by the member's user if that is a number, also when its
// files can't be written: the next attempt finds the folder, and existing ones keep their owner.
func (i *containerInstance) keep() error {
	owner, folder := i.owner(), filepath.Clean(i.spec.Kept)
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return err
	}
	if os.Mkdir(folder, 0o700) == nil {
		if err := owner.own(folder); err != nil {
			return errors.Join(err, os.Remove(folder))
		}
	}
	return keepFiles(folder, i.spec.Files, owner)
}

// owner returns the member's user if that is a number, otherwise nil: names are known only in the image.
func (i *containerInstance) owner() *account {
	user, group, _ := strings.Cut(i.spec.Container.User, ":")
	uid, err := strconv.Atoi(user)
	if err != nil {
		return nil
	}
	gid, err := strconv.Atoi(group)
	if err != nil {
		gid = 0 // an Engine's default
	}
	return &account{uid: uid, gid: gid}
}
