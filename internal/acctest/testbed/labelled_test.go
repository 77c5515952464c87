//go:build linux

package testbed

import (
	"context"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/volume"
)

func TestLabelled(t *testing.T) {
	bed, ctx := Shared(t, three), limited(t)
	afterwards := context.WithoutCancel(ctx)
	manager, other := bed.Nodes[0].Client(), bed.Nodes[2]
	for _, stage := range []string{"mine", "others"} {
		labels := map[string]string{"stage": stage}
		config, err := manager.ConfigCreate(ctx, swarm.ConfigSpec{
			Annotations: swarm.Annotations{Name: stage, Labels: labels}, Data: []byte("content"),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = manager.ConfigRemove(afterwards, config.ID) })
		secret, err := manager.SecretCreate(ctx, swarm.SecretSpec{
			Annotations: swarm.Annotations{Name: stage, Labels: labels}, Data: []byte("content"),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = manager.SecretRemove(afterwards, secret.ID) })
		if _, err := other.Client().VolumeCreate(ctx, volume.CreateOptions{Name: stage, Labels: labels}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Client().VolumeRemove(afterwards, stage, true) })
	}
	found, err := bed.Labelled(ctx, "stage=mine")
	if want := []string{"config mine", "secret mine"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("the Swarm has %q (%v), want %q", found, err, want)
	}
	found, err = other.Labelled(ctx, "stage=mine")
	if want := []string{"volume mine"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("%s has %q (%v), want %q", other.Name, found, err, want)
	}
}
