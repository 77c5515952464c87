package systemd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// foldersOf groups folders by host, for the hosts that the cluster has.
func foldersOf(p place, folders []domain.KeptFolder) map[string][]domain.KeptFolder {
	byHost := map[string][]domain.KeptFolder{}
	for _, folder := range folders {
		if _, known := p.hosts[folder.Host]; known {
			byHost[folder.Host] = append(byHost[folder.Host], folder)
		}
	}
	return byHost
}

// MissingFolders asks the folders' hosts. A folder on a host that can't be asked does not count as missing.
func (e *Engine) MissingFolders(
	ctx context.Context, folders []domain.KeptFolder,
) (missing []domain.KeptFolder, err error) {
	p, err := e.whole(ctx)
	if err != nil {
		return nil, err
	}
	byHost := foldersOf(p, folders)
	found, failed := onAll(byHost, func(name string) ([]domain.KeptFolder, error) {
		return askHost(ctx, e, p, name, relay.MissingFolders, byHost[name])
	})
	for _, folder := range folders {
		for _, gone := range found[folder.Host] {
			if gone.Member == folder.Member && gone.Path == folder.Path {
				missing = append(missing, folder)
			}
		}
	}
	return missing, besidesAway(failed)
}

// ReadFolder reads a folder from its host.
func (e *Engine) ReadFolder(ctx context.Context, folder domain.KeptFolder, visit engine.FolderVisitor) error {
	p, err := e.whole(ctx)
	if err != nil {
		return err
	}
	at, stays := p.hosts[folder.Host]
	if !stays {
		return fmt.Errorf("the folder of %s: %w: host %s is no longer in the cluster", folder.Member,
			engine.ErrNotFound, folder.Host)
	}
	h, err := e.named(folder.Host, at)
	if err != nil {
		return err
	}
	if err = h.ReadFolder(ctx, e.ref.Name, folder, visit); errors.Is(err, relay.ErrOutside) {
		err = ofHost(folder.Host, err)
	}
	return err
}

// RemoveFolders removes folders from their hosts.
func (e *Engine) RemoveFolders(ctx context.Context, folders []domain.KeptFolder) error {
	p, err := e.whole(ctx)
	if err != nil {
		return unlessGone(err)
	}
	byHost := foldersOf(p, folders)
	_, failed := onAll(byHost, func(name string) (relay.None, error) {
		return askHost(ctx, e, p, name, relay.RemoveFolders, byHost[name])
	})
	return e.besidesGone(ctx, failed)
}

// FindFiles returns the versions of files that the hosts have.
func (e *Engine) FindFiles(ctx context.Context) (map[string]engine.HostFiles, error) {
	return e.files(ctx)
}

func (e *Engine) findFiles(ctx context.Context) (map[string]engine.HostFiles, error) {
	p, err := e.whole(ctx)
	if err != nil {
		return nil, err
	}
	found, failed := askAll(ctx, e, p, relay.FindFiles, none)
	for name, err := range failed {
		if away(err) { // a host that has to be set up again has none
			found[name] = engine.HostFiles{Away: errors.Is(err, engine.ErrUnreachable)}
		}
	}
	return found, besidesAway(failed)
}

// ProvideFiles brings a version to the hosts that lack it, or parts of it.
func (e *Engine) ProvideFiles(ctx context.Context, spec engine.FilesSpec) error {
	e = e.now()
	p, err := e.find(ctx)
	if err != nil {
		return err
	}
	found, err := e.findFiles(ctx)
	if err != nil {
		return err
	}
	lacking := map[string]relay.None{}
	for name, has := range found {
		faults, there := has.Versions[spec.Tree.Digest()]
		if !has.Away && (!there || len(faults) > 0) {
			lacking[name] = none
		}
	}
	return onHosts(p, lacking, func(name string, _ relay.None) error {
		h, err := e.named(name, p.hosts[name])
		if err != nil {
			return err
		}
		return h.ProvideFiles(ctx, e.ref.Name, spec)
	})
}

// RemoveFiles removes versions from the hosts, except those that a member on any host refers to.
func (e *Engine) RemoveFiles(ctx context.Context, digests []string) error {
	p, err := e.whole(ctx)
	if err != nil {
		return unlessGone(err)
	}
	used, failed := askAll(ctx, e, p, relay.UsedFiles, digests)
	if err := e.besidesGone(ctx, failed); err != nil {
		return err
	}
	for _, here := range used {
		digests = slices.DeleteFunc(slices.Clone(digests),
			func(digest string) bool { return slices.Contains(here, digest) })
	}
	_, failed = askAll(ctx, e, p, relay.RemoveFiles, digests)
	return e.besidesGone(ctx, failed)
}
