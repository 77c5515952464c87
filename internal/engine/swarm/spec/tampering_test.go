package spec

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// tampering is a change that somebody may make to a service, and how the service then reads.
type tampering struct {
	do   func(s *swarm.ServiceSpec)
	want func(s *domain.MemberSpec)
}

func deviates(words ...string) func(*domain.MemberSpec) {
	return func(s *domain.MemberSpec) { s.Deviations = words }
}

var tamperings = map[string]tampering{
	"image": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Image = "trainer:2" },
		func(s *domain.MemberSpec) { s.Image = "trainer:2" },
	},
	"command": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Command = []string{"sh"} },
		func(s *domain.MemberSpec) { s.Command = []string{"sh"} },
	},
	"args": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Args = nil },
		func(s *domain.MemberSpec) { s.Args = nil },
	},
	"variable changed": {
		func(s *swarm.ServiceSpec) { replaceEnv(s, "EMPTY=", "EMPTY=no") },
		func(s *domain.MemberSpec) { s.Env["EMPTY"] = "no" },
	},
	"variable added": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Env = append(s.TaskTemplate.ContainerSpec.Env, "DEBUG=1")
		},
		func(s *domain.MemberSpec) { s.Env["DEBUG"] = "1" },
	},
	"variable removed": {
		func(s *swarm.ServiceSpec) { replaceEnv(s, "EMPTY=", "") },
		func(s *domain.MemberSpec) { delete(s.Env, "EMPTY") },
	},
	"variable taken from the image": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Env = append(s.TaskTemplate.ContainerSpec.Env, "PATH")
		},
		deviates("variable PATH is unset"),
	},
	"variable made a template": {
		func(s *swarm.ServiceSpec) {
			replaceEnv(s, "TEMPLATE="+literal("{{.Node.Hostname}}"), "TEMPLATE={{.Node.Hostname}}")
		},
		deviates("variable TEMPLATE is a Swarm template"),
	},
	"variable twice": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Env = append(s.TaskTemplate.ContainerSpec.Env, "EMPTY=")
		},
		deviates("variable EMPTY is declared twice"),
	},
	"working directory": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Dir = "/" },
		func(s *domain.MemberSpec) { s.WorkingDir = "/" },
	},
	"mount changed": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Mounts[0].ReadOnly = false },
		func(s *domain.MemberSpec) { s.Mounts[0].ReadOnly = false },
	},
	"mount removed": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Mounts = s.TaskTemplate.ContainerSpec.Mounts[1:]
		},
		func(s *domain.MemberSpec) { s.Mounts = s.Mounts[1:] },
	},
	"kept folder removed": {
		func(s *swarm.ServiceSpec) {
			c := s.TaskTemplate.ContainerSpec
			c.Mounts = slices.DeleteFunc(c.Mounts,
				func(m mount.Mount) bool { return m.Source == "trainyard.lab.kept.mnist-worker-3" })
		},
		func(s *domain.MemberSpec) { s.Kept = "" },
	},
	"mount of another type": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Mounts = append(s.TaskTemplate.ContainerSpec.Mounts,
				mount.Mount{Type: mount.TypeNamedPipe, Target: "/pipe"})
		},
		deviates(`mount at "/pipe" is of type "npipe"`),
	},
	"mount made a template": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Mounts[1].Source = "results-{{.Task.Slot}}" },
		func(s *domain.MemberSpec) {
			s.Mounts[1].Source = "results-{{.Task.Slot}}"
			s.Deviations = []string{`mount at "/results" is a Swarm template`}
		},
	},
	"driver of a volume": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Mounts[1].VolumeOptions.DriverConfig.Options["o"] = "size=2m"
		},
		func(s *domain.MemberSpec) {
			s.Mounts[1].Driver = &domain.VolumeDriver{
				Name: "local", Options: map[string]string{"type": "tmpfs", "device": "{{memory}}", "o": "size=2m"},
			}
		},
	},
	"no driver of a volume": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Mounts[1].VolumeOptions = nil },
		func(s *domain.MemberSpec) { s.Mounts[1].Driver = nil },
	},
	"odd size": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Mounts[2].TmpfsOptions.SizeBytes++ },
		deviates(`size of the tmpfs at "/scratch" is 67108865 bytes`),
	},
	"shared memory": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Mounts = slices.Delete(s.TaskTemplate.ContainerSpec.Mounts, 3, 4)
		},
		func(s *domain.MemberSpec) { s.Container.ShmSizeMiB = 0 },
	},
	"file": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Configs = s.TaskTemplate.ContainerSpec.Configs[1:]
		},
		func(s *domain.MemberSpec) { s.Files = nil },
	},
	"mode of a file": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Configs[0].File.Mode = 0o400 },
		deviates(`the mode of /run/trainyard/hostfile is "0400" instead of "0444"`),
	},
	"config": {
		func(s *swarm.ServiceSpec) {
			ref := s.TaskTemplate.ContainerSpec.Configs[1]
			ref.ConfigID, ref.ConfigName, ref.File.Mode = "foreign", "theirs", 0o400
		},
		func(s *domain.MemberSpec) {
			s.Container.Configs = map[string]domain.ConfigFile{
				"train.yaml": {Content: "epochs: 4\n", Target: "/etc/train.yaml", Mode: 0o400},
			}
		},
	},
	"config added": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Configs = append(s.TaskTemplate.ContainerSpec.Configs, &swarm.ConfigReference{
				ConfigID: "foreign", ConfigName: "theirs",
				File: &swarm.ConfigReferenceFileTarget{Name: "/etc/theirs", Mode: 0o444},
			})
		},
		func(s *domain.MemberSpec) {
			s.Container.Configs["/etc/theirs"] = domain.ConfigFile{Content: "epochs: 4\n", Target: "/etc/theirs"}
		},
	},
	"secret": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Secrets[0].SecretName = "token2" },
		func(s *domain.MemberSpec) { s.Container.Secrets["token"] = domain.SecretFile{Version: "token2"} },
	},
	"secret added": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Secrets = append(s.TaskTemplate.ContainerSpec.Secrets, &swarm.SecretReference{
				SecretID: "foreign", SecretName: "theirs",
				File: &swarm.SecretReferenceFileTarget{Name: "theirs", Mode: 0o444},
			})
		},
		func(s *domain.MemberSpec) {
			s.Container.Secrets["/run/secrets/theirs"] = domain.SecretFile{
				Version: "theirs", Target: "/run/secrets/theirs", Mode: 0o444,
			}
		},
	},
	"reservation": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.Resources.Reservations.NanoCPUs = 2e9 },
		func(s *domain.MemberSpec) { s.Resources.CPUs = 2 },
	},
	"limit": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.Resources.Limits.MemoryBytes *= 2 },
		func(s *domain.MemberSpec) { s.Resources.Limits.MemoryMiB *= 2 },
	},
	"no resources": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.Resources = nil },
		func(s *domain.MemberSpec) { s.Resources = domain.ResourceRequirements{} },
	},
	"grace period": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.StopGracePeriod = nil },
		func(s *domain.MemberSpec) { s.GracePeriod = domain.DefaultGracePeriod },
	},
	"init": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Init = nil },
		func(s *domain.MemberSpec) { s.Container.Init = false },
	},
	"user": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.User = "root" },
		func(s *domain.MemberSpec) { s.Container.User = "root" },
	},
	"stop signal": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.StopSignal = "SIGKILL" },
		func(s *domain.MemberSpec) { s.Container.StopSignal = "SIGKILL" },
	},
	"ulimit": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Ulimits[0].Soft = 7 },
		func(s *domain.MemberSpec) { s.Container.Ulimits["memlock"] = domain.Ulimit{Soft: 7, Hard: -1} },
	},
	"health check": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.ContainerSpec.Healthcheck.Test = []string{"CMD-SHELL", "true"}
		},
		func(s *domain.MemberSpec) { s.Container.HealthCheck.Command = []string{"/bin/sh", "-c", "true"} },
	},
	"no health check": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Healthcheck.Test = []string{"NONE"} },
		func(s *domain.MemberSpec) {
			s.Container.HealthCheck = nil
			s.Deviations = []string{`the health check is "NONE"`}
		},
	},
	"log driver": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.LogDriver = nil },
		func(s *domain.MemberSpec) { s.Container.Logging = nil },
	},
	"port": {
		func(s *swarm.ServiceSpec) { s.EndpointSpec.Ports[0].PublishedPort = 17000 },
		func(s *domain.MemberSpec) {
			s.Container.Ports["board"] = domain.PublishedPort{Target: 6006, Published: 17000}
		},
	},
	"port added": {
		func(s *swarm.ServiceSpec) {
			s.EndpointSpec.Ports = append(s.EndpointSpec.Ports,
				swarm.PortConfig{Protocol: "udp", TargetPort: 1, PublishedPort: 2, PublishMode: "ingress"})
		},
		func(s *domain.MemberSpec) {
			s.Container.Ports["2/udp"] = domain.PublishedPort{Target: 1, Published: 2, Protocol: "udp"}
			s.Deviations = []string{`the publish mode of port 2/udp is "ingress" instead of "host"`}
		},
	},
	"endpoint": {
		func(s *swarm.ServiceSpec) { s.EndpointSpec = nil },
		func(s *domain.MemberSpec) {
			s.Container.Ports = nil
			s.Deviations = []string{`the endpoint mode is "vip" instead of "dnsrr"`}
		},
	},
	"host name": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Hostname = "other" },
		deviates(`the host name is "other" instead of "mnist-worker-3"`),
	},
	"other host": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.Placement.Constraints = []string{"node.id == node0"} },
		func(s *domain.MemberSpec) { s.Host = "h0" },
	},
	"unknown host": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.Placement.Constraints = []string{"node.id==node9"} },
		deviates(`constraint "node.id==node1" was removed`, `constraint "node.id==node9" was added`),
	},
	"constraint added": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.Placement.Constraints = append(s.TaskTemplate.Placement.Constraints, "node.role == manager")
		},
		deviates(`constraint "node.role==manager" was added`),
	},
	"constraints removed": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.Placement = nil },
		deviates(`constraint "node.id==node1" was removed`),
	},
	"stopped without a reason": {
		func(s *swarm.ServiceSpec) {
			s.TaskTemplate.Placement.Constraints = append(s.TaskTemplate.Placement.Constraints, nowhere)
		},
		deviates(`constraint "node.id==nowhere" was added`),
	},
	"replicas a node": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.Placement.MaxReplicas = 1 },
		deviates("the maximum of replicas per node is 1 instead of 0"),
	},
	"restart policy": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.RestartPolicy = nil },
		deviates(`Swarm's own restart condition is "any" instead of "none"`),
	},
	"network": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.Networks = nil },
		deviates("the cluster's network was removed"),
	},
	"mode": {
		func(s *swarm.ServiceSpec) { s.Mode = swarm.ServiceMode{Global: &swarm.GlobalService{}} },
		deviates("the service is not replicated"),
	},
	"service label removed": {
		func(s *swarm.ServiceSpec) { delete(s.Labels, LabelGroup) },
		deviates("service label trainyard.group is missing"),
	},
	"service label of the cluster removed": {
		func(s *swarm.ServiceSpec) { delete(s.Labels, LabelCluster) },
		deviates("service label trainyard.cluster is missing"),
	},
	"service label changed": {
		func(s *swarm.ServiceSpec) { s.Labels[LabelHash] = "bad" },
		deviates(`service label trainyard.hash is "bad" instead of "c0ffee"`),
	},
	"all service labels removed": {
		func(s *swarm.ServiceSpec) { s.Labels = nil },
		func(s *domain.MemberSpec) {
			// What only the labels held is lost.
			s.Host, s.Address, s.Restart, s.Image, s.Container.PullPolicy = "", "", domain.RestartRule{}, "sha256:1111",
				domain.PullIfNotPresent
			file := s.Container.Configs["train.yaml"]
			s.Container.Configs = map[string]domain.ConfigFile{"/etc/train.yaml": file}
			s.Container.Secrets = map[string]domain.SecretFile{
				"/run/secrets/token": {
					Version: "trainyard.lab.secret.mnist.worker.token.1", Target: "/run/secrets/token",
				},
			}
			for _, key := range append(slices.Clone(identityLabels), LabelSpec) {
				s.Deviations = append(s.Deviations, "service label "+key+" is missing")
			}
			slices.Sort(s.Deviations)
		},
	},
	"container label removed": {
		func(s *swarm.ServiceSpec) { delete(s.TaskTemplate.ContainerSpec.Labels, LabelRun) },
		deviates("container label trainyard.run is missing"),
	},
	"container label changed": {
		func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec.Labels[LabelRun] = "8" },
		func(s *domain.MemberSpec) {
			s.Run = 8
			s.Deviations = []string{`service label trainyard.run is "7" instead of "8"`}
		},
	},
}

func replaceEnv(s *swarm.ServiceSpec, before, after string) {
	env := s.TaskTemplate.ContainerSpec.Env
	i := slices.Index(env, before)
	if i < 0 {
		panic(before + " is not among " + strings.Join(env, " "))
	}
	env[i] = after
	if after == "" {
		s.TaskTemplate.ContainerSpec.Env = slices.Delete(env, i, i+1)
	}
}
