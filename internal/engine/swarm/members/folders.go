package members

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// FolderPlace names the volume, or the path on the host, of a folder.
func (e Members) FolderPlace(folder domain.KeptFolder) string {
	m := e.mountOf(folder)
	below := strings.TrimPrefix(path.Clean(folder.Path), path.Clean(m.Target))
	if m.Type == mount.TypeBind {
		return path.Join(m.Source, below)
	}
	return "volume " + m.Source + strings.Replace(below, "/", ":/", 1)
}

// mountOf returns the mount that a folder is in, as read-only.
func (e Members) mountOf(folder domain.KeptFolder) mount.Mount {
	if folder.Mount == nil {
		return mount.Mount{
			Type: mount.TypeVolume, Source: spec.KeptVolume(e.Cluster, folder.Member), Target: folder.Path,
			ReadOnly: true,
		}
	}
	kind := mount.TypeBind
	if folder.Mount.Type == domain.MountVolume {
		kind = mount.TypeVolume
	}
	return mount.Mount{Type: kind, Source: folder.Mount.Source, Target: folder.Mount.Target, ReadOnly: true}
}

// reach is which of a cluster's hosts can be reached.
type reach struct {
	hosts map[string]domain.Host
	// engines are those that can be reached, by node ID.
	engines map[string]client.APIClient
}

// engineOf returns the Engine of a host; nil if the host is down, its address is unknown, or it is not the cluster's.
func (r reach) engineOf(host string) client.APIClient { return r.engines[r.hosts[host].ID] }

// reach returns which hosts can be reached.
func (e Members) reach(ctx context.Context) (r reach, err error) {
	if r.engines, err = e.ReadyEngines(ctx); err != nil {
		return r, err
	}
	cluster, err := e.declared(ctx)
	r.hosts = cluster.Hosts
	declared := dockerapi.HostsOf(cluster)
	maps.DeleteFunc(r.engines, func(id string, _ client.APIClient) bool {
		return declared[id] == "" // the manager in use need not be one of the cluster's hosts
	})
	return r, err
}

// MissingFolders checks whether the folders' volumes exist. For folders in a declared mount, it checks only their
// parent folder, as there may be thousands.
func (e Members) MissingFolders(ctx context.Context, folders []domain.KeptFolder) ([]domain.KeptFolder, error) {
	r, err := e.reach(ctx)
	if err != nil {
		return nil, err
	}
	byHost := map[string][]domain.KeptFolder{}
	for _, folder := range folders {
		byHost[folder.Host] = append(byHost[folder.Host], folder)
	}
	var mu sync.Mutex
	var missing []domain.KeptFolder
	err = dockerapi.InParallel(ctx, slices.Collect(maps.Keys(byHost)), func(ctx context.Context, name string) error {
		host := r.engineOf(name)
		if host == nil {
			return nil // it is down, or its address is unknown
		}
		own, err := e.missingOn(ctx, host, byHost[name])
		if client.IsErrConnectionFailed(err) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		missing = append(missing, own...)
		return err
	})
	return missing, err
}

func (e Members) missingOn(
	ctx context.Context, host client.APIClient, folders []domain.KeptFolder,
) (missing []domain.KeptFolder, err error) {
	listed, err := host.VolumeList(ctx, volume.ListOptions{})
	if err != nil {
		return nil, err
	}
	volumes := map[string]bool{}
	for _, v := range listed.Volumes {
		volumes[v.Name] = true
	}
	there := map[string]bool{} // by source and path of the parent folder
	for _, folder := range folders {
		m := e.mountOf(folder)
		if m.Type == mount.TypeVolume && !volumes[m.Source] {
			missing = append(missing, folder)
			continue
		}
		if folder.Mount == nil {
			continue
		}
		around := path.Dir(folder.Path)
		found, known := there[m.Source+":"+around]
		if !known {
			if found, err = exists(ctx, host, m, around); err != nil {
				return nil, err
			}
			there[m.Source+":"+around] = found
		}
		if !found {
			missing = append(missing, folder)
		}
	}
	return missing, nil
}

// exists reports whether a path exists in a mount.
func exists(ctx context.Context, host client.APIClient, in mount.Mount, at string) (found bool, err error) {
	err = withMount(ctx, host, in, func(id string) error {
		_, err := host.ContainerStatPath(ctx, id, at)
		return err
	})
	if cerrdefs.IsNotFound(err) || errors.Is(err, errNoSource) {
		return false, nil
	}
	return err == nil, err
}

// ReadFolder reads a folder through the Engine of its host.
func (e Members) ReadFolder(ctx context.Context, folder domain.KeptFolder, visit engine.FolderVisitor) error {
	r, err := e.reach(ctx)
	if err != nil {
		return err
	}
	if _, stays := r.hosts[folder.Host]; !stays {
		return fmt.Errorf("the folder of %s: %w: host %s is no longer in the cluster", folder.Member,
			engine.ErrNotFound, folder.Host)
	}
	host := r.engineOf(folder.Host)
	if host == nil {
		return fmt.Errorf("the kept folder of %s is on host %q, whose Docker Engine %w: the host is down, or the "+
			"cluster does not declare it with an address", folder.Member, folder.Host, engine.ErrUnreachable)
	}
	m := e.mountOf(folder)
	if m.Type == mount.TypeVolume { // mounting it would create it again
		if _, err := host.VolumeInspect(ctx, m.Source); err != nil {
			return e.unreadable(folder, err)
		}
	}
	err = withMount(ctx, host, m, func(id string) error {
		content, _, err := host.CopyFromContainer(ctx, id, folder.Path)
		if err != nil {
			return err
		}
		defer content.Close()
		return visitTar(tar.NewReader(content), visit)
	})
	return e.unreadable(folder, err)
}

func (e Members) unreadable(folder domain.KeptFolder, err error) error {
	if cerrdefs.IsNotFound(err) || errors.Is(err, errNoSource) {
		return fmt.Errorf("%s of %s on host %s: %w", e.FolderPlace(folder), folder.Member, folder.Host,
			engine.ErrNotFound)
	}
	return err
}

// visitTar passes on the entries of a folder's archive, without the folder's name, with which theirs begin.
func visitTar(archive *tar.Reader, visit engine.FolderVisitor) error {
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, name, below := strings.Cut(path.Clean(header.Name), "/")
		if !below {
			continue // the folder itself
		}
		header.Name = name
		if header.Typeflag == tar.TypeLink {
			_, header.Linkname, _ = strings.Cut(path.Clean(header.Linkname), "/")
		}
		if err := visit(header, archive); err != nil {
			return err
		}
	}
}

// errNoSource is returned if the source of a mount does not exist.
var errNoSource = errors.New("the mount's source does not exist")

// withMount calls use with a container that has the mount and is never started: through it, an Engine can read the
// mount's content. It uses the smallest image that the host has.
func withMount(ctx context.Context, host client.APIClient, m mount.Mount, use func(id string) error) (err error) {
	held, err := images.ListImages(ctx, host, image.ListOptions{})
	if err != nil {
		return err
	}
	if len(held) == 0 {
		return errors.New("the host has no image, and a Docker Engine needs one to read a volume; pull any")
	}
	smallest := slices.MinFunc(held, func(a, b image.Summary) int { return cmp.Compare(a.Size, b.Size) })
	created, err := host.ContainerCreate(ctx,
		&container.Config{Image: smallest.ID, Entrypoint: []string{"none"}, NetworkDisabled: true},
		&container.HostConfig{Mounts: []mount.Mount{m}, NetworkMode: container.NetworkMode("none")}, nil, nil, "")
	if cerrdefs.IsInvalidArgument(err) && m.Type == mount.TypeBind {
		return fmt.Errorf("%w: %w", errNoSource, err)
	}
	if err != nil {
		return notTheFolder(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dockerapi.ClearPatience)
		defer cancel()
		removed := host.ContainerRemove(ctx, created.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if !cerrdefs.IsNotFound(removed) {
			err = errors.Join(err, removed)
		}
	}()
	err = use(created.ID)
	if cerrdefs.IsNotFound(err) {
		if _, gone := host.ContainerInspect(ctx, created.ID); gone != nil { // somebody prunes containers
			return notTheFolder(gone)
		}
	}
	return err
}

// notTheFolder returns an error that is not "not found", so that it doesn't look as if a folder were missing: it is the
// container to read it with, or that container's image.
func notTheFolder(err error) error {
	if !cerrdefs.IsNotFound(err) {
		return err
	}
	return fmt.Errorf("the container to read a volume or folder with: %s", err.Error())
}

// RemoveFolders removes the volumes of folders on all hosts: a member that moved left one on each. Hosts that are no
// longer the cluster's are not waited for.
func (e Members) RemoveFolders(ctx context.Context, folders []domain.KeptFolder) error {
	r, err := e.reach(ctx)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, folder := range folders {
		if folder.Mount != nil {
			continue
		}
		if _, stays := r.hosts[folder.Host]; stays && r.engineOf(folder.Host) == nil {
			return fmt.Errorf("removing %s: the Docker Engine of host %q %w", e.FolderPlace(folder), folder.Host,
				engine.ErrUnreachable)
		}
		names[e.mountOf(folder).Source] = true
	}
	return dockerapi.InParallel(ctx, slices.Collect(maps.Values(r.engines)),
		func(ctx context.Context, host client.APIClient) error {
			listed, err := host.VolumeList(ctx, volume.ListOptions{})
			if err != nil {
				return err
			}
			listed.Volumes = slices.DeleteFunc(listed.Volumes, func(v *volume.Volume) bool { return !names[v.Name] })
			return dockerapi.InParallel(ctx, listed.Volumes, func(ctx context.Context, v *volume.Volume) error {
				// The container that used it may take some seconds to go.
				return dockerapi.Until(ctx, "volume "+v.Name+" to be free", func() (bool, error) {
					err := host.VolumeRemove(ctx, v.Name, false)
					if cerrdefs.IsNotFound(err) {
						err = nil
					}
					return err == nil, err
				})
			})
		})
}
