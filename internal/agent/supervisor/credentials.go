//go:build linux

package supervisor

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// writeCredentials creates the folder with an instance's configs and secrets, which apart from it only root can read.
func (t *transient) writeCredentials(folder string, spec domain.MemberSpec, user *account) error {
	c := spec.Container
	if len(c.Configs)+len(c.Secrets) == 0 {
		return nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	write := func(name string, content []byte, mode domain.FileMode) error {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(path, os.FileMode(mode)); err != nil {
			return err
		}
		return user.own(path)
	}
	for name, file := range c.Configs {
		if err := write(name, []byte(file.Content), cmp.Or(file.Mode, domain.DefaultConfigMode)); err != nil {
			return err
		}
	}
	for name, file := range c.Secrets {
		content, err := t.dir.ReadSecret(spec, name)
		if errors.Is(err, engine.ErrNotFound) {
			return &commandError{err}
		}
		if err != nil {
			return err
		}
		if err := write(name, content, cmp.Or(file.Mode, domain.DefaultSecretMode)); err != nil {
			return err
		}
	}
	// Given to its user last: until here nobody else could put a link there.
	return user.own(folder)
}
