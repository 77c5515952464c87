package spec

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// mounts reads the mounts, and the size of the shared memory, which is one of them.
func (r *reader) mounts() {
	for _, m := range r.container.Mounts {
		source, sourceOK := r.look.text(m.Source)
		target, targetOK := r.look.text(m.Target)
		if !sourceOK || !targetOK {
			r.deviate("mount at %q is a Swarm template", m.Target)
		}
		var size int64
		if m.TmpfsOptions != nil {
			size = r.mib(fmt.Sprintf("size of the tmpfs at %q", target), m.TmpfsOptions.SizeBytes)
		}
		if isShm(m) {
			r.found.Container.ShmSizeMiB = size
			continue
		}
		if !r.id.Pooled && isKept(m, r.found) {
			r.found.Kept = target
			continue
		}
		read := domain.Mount{Source: source, Target: target, ReadOnly: m.ReadOnly, SizeMiB: size}
		if driver := driverOf(m); driver != nil {
			read.Driver = r.driver(target, *driver)
		}
		for kind, rendered := range mountTypes {
			if rendered == m.Type {
				read.Type = kind
			}
		}
		if read.Type == "" {
			r.deviate("mount at %q is of type %q", target, m.Type)
			continue
		}
		r.found.Mounts = append(r.found.Mounts, read)
	}
}

// driver reads the driver of the volume at a target.
func (r *reader) driver(target string, live mount.Driver) *domain.VolumeDriver {
	read := &domain.VolumeDriver{Name: live.Name}
	for name, value := range live.Options {
		text, ok := r.look.text(value)
		if !ok {
			r.deviate("option %q of the volume driver at %q is a Swarm template", name, target)
		}
		if read.Options == nil {
			read.Options = map[string]string{}
		}
		read.Options[name] = text
	}
	return read
}

// driverOf returns the driver of a mount's volume; nil if it has none.
func driverOf(m mount.Mount) *mount.Driver {
	if m.VolumeOptions == nil {
		return nil
	}
	return m.VolumeOptions.DriverConfig
}

// isShm reports whether a mount was rendered from a size of the shared memory.
func isShm(m mount.Mount) bool {
	return m.Type == mount.TypeTmpfs && m.Target == domain.ShmDir && m.TmpfsOptions != nil &&
		m.TmpfsOptions.Mode == shmMode
}

// configs reads the files from config objects: those of the specification are in a folder of their own.
func (r *reader) configs() {
	for _, ref := range r.container.Configs {
		if ref.File == nil {
			continue // it is not a file
		}
		target, content, mode := ref.File.Name, r.look.content(ref), domain.FileMode(ref.File.Mode)
		name, recorded := r.record.Configs[target]
		if file, isFile := strings.CutPrefix(target, domain.FilesDir+"/"); isFile && !recorded {
			r.found.Files = append(r.found.Files, domain.File{Name: file, Content: content})
			expect(r, fmt.Sprintf("the mode of %s", target), fmt.Sprintf("%#o", mode),
				fmt.Sprintf("%#o", domain.DefaultConfigMode))
			continue
		}
		if !recorded {
			name = target
		}
		if r.found.Container.Configs == nil {
			r.found.Container.Configs = map[string]domain.ConfigFile{}
		}
		r.found.Container.Configs[name] = domain.ConfigFile{Content: content, Target: target, Mode: mode}
	}
}

// secrets reads the secrets. If one is not of the recorded version, its object's name is read as its version.
func (r *reader) secrets() map[string]domain.SecretFile {
	secrets := map[string]domain.SecretFile{}
	for _, ref := range r.container.Secrets {
		if ref.File == nil {
			continue
		}
		target := ref.File.Name
		if !path.IsAbs(target) {
			target = path.Join("/run/secrets", target)
		}
		file := domain.SecretFile{Version: ref.SecretName, Target: target, Mode: domain.FileMode(ref.File.Mode)}
		recorded, found := r.record.Secrets[target]
		if !found {
			recorded.Name = target
		}
		if found && secretObject(r.found, recorded.Name, recorded.Version).Name == ref.SecretName {
			file.Version = recorded.Version
		}
		secrets[recorded.Name] = file
	}
	return secrets
}

// healthcheck reads the health check. A shell form is read as the command that runs the shell.
func (r *reader) healthcheck() *domain.HealthCheck {
	check := r.container.Healthcheck
	if check == nil {
		return nil
	}
	command, known := healthCommand(check)
	if !known {
		r.deviate("the health check is %s", shown(strings.Join(check.Test, " ")))
		return nil
	}
	interval, timeout, start := domain.Duration(check.Interval), domain.Duration(check.Timeout),
		domain.Duration(check.StartPeriod)
	return &domain.HealthCheck{
		Command: command, Interval: &interval, Timeout: &timeout, StartPeriod: &start, Retries: check.Retries,
	}
}

func healthCommand(check *container.HealthConfig) (command []string, known bool) {
	if len(check.Test) == 0 {
		return nil, false
	}
	switch check.Test[0] {
	case "CMD":
		return slices.Clone(check.Test[1:]), true
	case "CMD-SHELL":
		return append([]string{"/bin/sh", "-c"}, check.Test[1:]...), true
	}
	return nil, false
}

func (r *reader) ulimits() map[string]domain.Ulimit {
	limits := map[string]domain.Ulimit{}
	for _, limit := range r.container.Ulimits {
		limits[limit.Name] = domain.Ulimit{Soft: limit.Soft, Hard: limit.Hard}
	}
	return limits
}

// ports reads the published ports. One without a name is named after its published port and protocol.
func (r *reader) ports() map[string]domain.PublishedPort {
	if r.spec.EndpointSpec == nil {
		return nil
	}
	ports := map[string]domain.PublishedPort{}
	for _, port := range r.spec.EndpointSpec.Ports {
		plain := fmt.Sprintf("%d/%s", port.PublishedPort, port.Protocol)
		name := port.Name
		if _, taken := ports[name]; taken || name == "" {
			name = plain
		}
		ports[name] = domain.PublishedPort{
			Target: int(port.TargetPort), Published: int(port.PublishedPort), Protocol: string(port.Protocol),
		}
		expect(r, "the publish mode of port "+plain, string(port.PublishMode), string(swarm.PortConfigPublishModeHost))
	}
	return ports
}

func logging(driver *swarm.Driver) *domain.Logging {
	if driver == nil {
		return nil
	}
	return &domain.Logging{Driver: driver.Name, Options: driver.Options}
}
