//go:build linux

package members

import (
	"archive/tar"
	"errors"
	"io"
	"testing"

	"github.com/docker/docker/api/types/volume"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// TestFoldersByHost: folders are found on hosts by the names that the cluster declares. A host that can't be reached
// holds up their removal, but not one that is no longer the cluster's.
func TestFoldersByHost(t *testing.T) {
	e, _ := stored(t, "folders")
	m, err := e.Connection.Manager(t.Context())
	swarmtest.Must(t, err)
	info, err := m.Info(t.Context())
	swarmtest.Must(t, err)
	document, err := engine.Cluster(t.Context(), e.Items)
	swarmtest.Must(t, err)
	document.Spec.Hosts = map[string]domain.Host{"gpu1": {ID: info.Swarm.NodeID}, "down": {ID: "gone"}}
	_, err = engine.Put(t.Context(), e.Items, document)
	swarmtest.Must(t, err)
	on := func(member, host string) domain.KeptFolder {
		return domain.KeptFolder{Member: member, Host: host, Path: "/results"}
	}
	kept, lost := on("kept", "gpu1"), on("lost", "gpu1")
	_, err = m.VolumeCreate(t.Context(), volume.CreateOptions{Name: spec.KeptVolume(e.Cluster, kept.Member)})
	swarmtest.Must(t, err)
	missing := func(want ...domain.KeptFolder) {
		t.Helper()
		found, err := e.MissingFolders(t.Context(),
			[]domain.KeptFolder{kept, lost, on("lost", "down"), on("lost", "retired")})
		swarmtest.Must(t, err)
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("missing folders (-want +got):\n%s", diff)
		}
	}

	missing(lost)
	ignore := func(*tar.Header, io.Reader) error { return nil }
	if err := e.ReadFolder(acctest.Bounded(t), on("lost", "retired"), ignore); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("reading a folder of a host that is no longer the cluster's: %v", err)
	}
	if err := e.ReadFolder(acctest.Bounded(t), on("lost", "down"), ignore); !errors.Is(err, engine.ErrUnreachable) {
		t.Errorf("reading a folder of a host that is down: %v", err)
	}
	err = e.RemoveFolders(acctest.Bounded(t), []domain.KeptFolder{kept, on("lost", "down")})
	if !errors.Is(err, engine.ErrUnreachable) {
		t.Errorf("removing a folder of a host that is down: %v", err)
	}
	missing(lost)
	swarmtest.Must(t, e.RemoveFolders(acctest.Bounded(t), []domain.KeptFolder{kept, lost, on("lost", "retired")}))
	missing(kept, lost)
}
