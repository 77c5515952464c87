//go:build linux

package testbed

import (
	"context"
	"errors"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	dockernetwork "github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/volume"
)

// Labelled returns the services, configs, secrets and networks of the bed's Swarm that have a label, such as
// "stage=test", each as "service NAME". The first node has to be a manager.
func (b *Bed) Labelled(ctx context.Context, label string) (found []string, err error) {
	docker, with := b.Nodes[0].client, filters.NewArgs(filters.Arg("label", label))
	services, one := docker.ServiceList(ctx, swarm.ServiceListOptions{Filters: with})
	for _, service := range services {
		found = append(found, "service "+service.Spec.Name)
	}
	configs, two := docker.ConfigList(ctx, swarm.ConfigListOptions{Filters: with})
	for _, config := range configs {
		found = append(found, "config "+config.Spec.Name)
	}
	secrets, three := docker.SecretList(ctx, swarm.SecretListOptions{Filters: with})
	for _, secret := range secrets {
		found = append(found, "secret "+secret.Spec.Name)
	}
	networks, four := docker.NetworkList(ctx, dockernetwork.ListOptions{Filters: with})
	for _, n := range networks {
		found = append(found, "network "+n.Name)
	}
	return found, errors.Join(one, two, three, four)
}

// Labelled returns the containers, even those that have ended, and the volumes of the node that have a label, such as
// "stage=test", each as "container NAME".
func (n *Node) Labelled(ctx context.Context, label string) (found []string, err error) {
	with := filters.NewArgs(filters.Arg("label", label))
	containers, one := n.client.ContainerList(ctx, container.ListOptions{All: true, Filters: with})
	for _, c := range containers {
		found = append(found, "container "+strings.Join(c.Names, " "))
	}
	volumes, two := n.client.VolumeList(ctx, volume.ListOptions{Filters: with})
	for _, v := range volumes.Volumes {
		found = append(found, "volume "+v.Name)
	}
	return found, errors.Join(one, two)
}
