package engine

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Features are the declarable features that only some engines support.
type Features struct {
	// Endpoint: a cluster can set its engine's endpoint.
	Endpoint bool
	// Roles, Availability, AdvertiseAddress and Socket: hosts have these attributes.
	Roles, Availability, AdvertiseAddress, Socket bool
	// Network: a cluster has a network of its own.
	Network bool
	// Pause: members can be paused, see [Pauser].
	Pause bool
	// Containers: members and agents run from images, in containers with networks of their own.
	Containers bool
	// Images: a member with an image runs in a container, in its host's network; others are plain programs.
	Images bool
	// UnitSettings: user, stop signal and ulimits of a member's container also apply to plain programs, which find
	// configs and secrets in a folder of their own.
	UnitSettings bool
}

// CheckCluster returns a problem for each attribute of a cluster that the engine does not support.
func (t Traits) CheckCluster(c domain.Cluster) domain.Problems {
	var ps domain.Problems
	check := func(supported bool, at domain.Path, value string) {
		if !supported && value != "" {
			t.unsupported(&ps, at, fmt.Sprintf("%v = %q", at[len(at)-1], value))
		}
	}
	check(t.Supports.Endpoint, domain.Path{"endpoint"}, c.Endpoint)
	check(t.Supports.Containers, domain.Path{"agent", "image"}, c.Agent.Image)
	if c.Agent.MetricsPort != 0 && t.NoMetricsPort != "" {
		ps.Add(domain.Path{"agent", "metrics_port"}, "Not supported by this engine",
			"the engine %q does not support metrics_port = %d: %s", t.Name, c.Agent.MetricsPort, t.NoMetricsPort)
	}
	if c.Network != nil && !t.Supports.Network {
		t.unsupported(&ps, domain.Path{"network"}, "network")
	}
	for _, name := range c.HostNames() {
		host, at := c.Hosts[name], domain.Path{"hosts", domain.Key(name)}
		check(t.Supports.Roles, at.At("role"), string(host.Role))
		check(t.Supports.Availability, at.At("availability"), string(host.Availability))
		check(t.Supports.AdvertiseAddress, at.At("advertise_address"), host.AdvertiseAddress)
		check(t.Supports.Socket, at.At("socket"), host.Socket)
	}
	return ps
}

// CheckResidents returns a problem at an attribute if an apply could not start the cluster's controller and agents.
func (t Traits) CheckResidents(at domain.Path) domain.Problems {
	var ps domain.Problems
	if t.NoResidents != "" {
		ps.Add(at, "No image for the controller", "%s", t.NoResidents)
	}
	return ps
}

// InContainer reports whether a member with this image runs in a container.
func (t Traits) InContainer(image string) bool {
	return t.Supports.Containers || t.Supports.Images && image != ""
}

// FilesOf returns the folder in which a member with this image finds the files of its specification.
func (t Traits) FilesOf(member, image string) string {
	if t.InContainer(image) {
		return domain.FilesDir
	}
	return t.FilesDir(member)
}

// CheckMember returns what the engine does not support in a member's specification: an error for what the member would
// need and miss, a warning for what merely has no effect.
func (t Traits) CheckMember(spec domain.MemberSpec) domain.Problems {
	if t.InContainer(spec.Image) {
		return t.checkContainer(spec)
	}
	var ps domain.Problems
	at := domain.Path{"roles", domain.Key(spec.Role)}
	if spec.Image != "" {
		ps.Warn(at.At("image"), "Image not used",
			"the engine %q runs programs installed on its hosts: image %q has no effect", t.Name, spec.Image)
	}
	if len(spec.Command) == 0 {
		ps.Add(at.At("command"), "Missing command", "the engine %q does not run images: role %q needs a command",
			t.Name, spec.Role)
	}
	for i, mount := range spec.Mounts {
		if mount.Type != "" && mount.Type != domain.MountBind {
			t.unsupported(&ps, at.At("mounts", i, "type"), fmt.Sprintf("type = %q", mount.Type))
		} else if mount.Source != mount.Target {
			ps.Add(at.At("mounts", i), "Mount not possible",
				"the engine %q can't mount %q at %q, as %s see the files of their hosts in place: use the same path "+
					"for source and target", t.Name, mount.Source, mount.Target, t.plain())
		}
		if mount.ReadOnly {
			ps.Warn(at.At("mounts", i, "read_only"), "Mount not read-only",
				"the engine %q can't prevent %s from writing to %q", t.Name, t.plain(), mount.Target)
		}
	}
	c := spec.Container
	t.checkCredentials(&ps, at, spec)
	c.Configs, c.Secrets = nil, nil
	if t.Supports.UnitSettings {
		c.User, c.StopSignal, c.Ulimits = "", "", nil
	}
	if !reflect.ValueOf(c).IsZero() {
		but := ""
		if t.Supports.UnitSettings {
			but = ", except user, stop_signal, ulimits, configs and secrets"
		}
		why := fmt.Sprintf("the engine %q runs no containers", t.Name)
		if t.Supports.Images {
			why = fmt.Sprintf("role %q has no image, and so no container", spec.Role)
		}
		ps.Warn(at.At("container"), "Container settings not used", "%s: these settings have no effect%s", why, but)
	}
	return ps
}

// plain describes the members that have no container.
func (t Traits) plain() string {
	if t.Supports.Images {
		return "members without an image"
	}
	return "its members"
}

// checkContainer returns the problems of a member that runs in a container.
func (t Traits) checkContainer(spec domain.MemberSpec) (ps domain.Problems) {
	at := domain.Path{"roles", domain.Key(spec.Role)}
	if spec.WorkingDir != "" && !path.IsAbs(spec.WorkingDir) {
		ps.Add(at.At("working_dir"), "Invalid working directory", "%q is not an absolute path in the image",
			spec.WorkingDir)
	}
	in := at.At("container")
	for _, name := range slices.Sorted(maps.Keys(spec.Container.Configs)) {
		if spec.Container.Configs[name].Target == "" {
			ps.Add(in.At("configs", domain.Key(name), "target"), "Missing target",
				"config %q needs an absolute path in the container, such as \"/etc/%s\"", name, name)
		}
	}
	if t.Supports.Containers {
		return ps
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Container.Ports)) {
		if port := spec.Container.Ports[name]; port.Published != port.Target {
			ps.Add(in.At("ports", domain.Key(name), "published"), "Port not possible",
				"the engine %q can't publish port %d as %d, as containers use the network of their host: have the "+
					"member listen on %d, and set target = %d",
				t.Name, port.Target, port.Published, port.Published, port.Published)
		}
	}
	return ps
}

// checkCredentials adds the problems of configs and secrets for members without a container.
func (t Traits) checkCredentials(ps *domain.Problems, at domain.Path, spec domain.MemberSpec) {
	c := spec.Container
	if !t.Supports.UnitSettings {
		if len(c.Configs) > 0 {
			t.unsupported(ps, at.At("container", "configs"), "configs")
		}
		if len(c.Secrets) > 0 {
			t.unsupported(ps, at.At("container", "secrets"), "secrets")
		}
		return
	}
	placed := func(kind, name, target string) {
		if target != "" {
			ps.Add(at.At("container", kind, domain.Key(name), "target"), "Target not possible",
				"the engine %q can't place a file at %q for one member alone, as %s see the files of their hosts: "+
					"omit target, and read $%s/%s",
				t.Name, target, t.plain(), domain.CredentialsVariable, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Configs)) {
		placed("configs", name, c.Configs[name].Target)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		placed("secrets", name, c.Secrets[name].Target)
		if _, twice := c.Configs[name]; twice {
			ps.Add(at.At("container", "secrets", domain.Key(name)), "Name taken",
				"%q is already the name of a config, and both would be the file $%s/%s: rename one of them", name,
				domain.CredentialsVariable, name)
		}
	}
	if value, own := spec.Env[domain.CredentialsVariable]; own && len(c.Configs)+len(c.Secrets) > 0 {
		ps.Add(at.At("env", domain.Key(domain.CredentialsVariable)), "Variable taken",
			"%s = %q can't be set for a role with configs or secrets: it names the folder with these",
			domain.CredentialsVariable, value)
	}
}

// unsupported adds the problem of an attribute that the engine does not support.
func (t Traits) unsupported(ps *domain.Problems, at domain.Path, what string) {
	ps.Add(at, "Not supported by this engine", "the engine %q does not support %s: omit it, or use an engine that does",
		t.Name, what)
}
