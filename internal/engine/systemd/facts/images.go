package facts

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// ToolkitHook is the program that a Docker Engine looks for when it starts: if it exists, containers can get GPUs.
const ToolkitHook = "nvidia-container-runtime-hook"

// CheckImage returns what a host lacks for a member with an image, which may use GPUs. Once in the cluster, the host
// itself knows more.
func CheckImage(f Facts, spec domain.MemberSpec, usesGPUs bool) (problems domain.Problems) {
	switch {
	case f.Docker.Socket == "":
		NoEngine(&problems, spec, "there is no /run/docker.sock")
	case f.Docker.Silent:
		NoEngine(&problems, spec, "nothing answers at "+f.Docker.Socket)
	}
	if usesGPUs && !f.NVIDIA.Toolkit {
		NoToolkit(&problems, spec, "sudo systemctl restart docker")
	}
	return problems
}

// NoEngine adds the problem of a host on which no Docker Engine answers, with the reason.
func NoEngine(problems *domain.Problems, spec domain.MemberSpec, why string) {
	problems.Add(domain.Path{"roles", domain.Key(spec.Role), "image"}, "No Docker Engine",
		"host %q has no running Docker Engine, and role %q needs one for its image %q: %s. "+
			"Install it: sudo apt-get install -y docker.io (Debian, Ubuntu), or see docs.docker.com/engine/install; "+
			"if it is installed, start it: sudo systemctl enable --now docker",
		spec.Host, spec.Role, spec.Image, why)
}

// NoToolkit adds the problem of a host without NVIDIA's container toolkit; restart is the command that restarts its
// Docker Engine.
func NoToolkit(problems *domain.Problems, spec domain.MemberSpec, restart string) {
	problems.Add(domain.Path{"roles", domain.Key(spec.Role), "gpus"}, "No container toolkit",
		"host %q lacks NVIDIA's container toolkit, and role %q needs it for GPUs in containers: %s not found. "+
			"Install it: sudo apt-get install -y nvidia-container-toolkit, from NVIDIA's package repository "+
			"(docs.nvidia.com/datacenter/cloud-native/container-toolkit). "+
			"Then run %s, as Docker Engine looks for it only at startup; its default runtime need not change",
		spec.Host, spec.Role, ToolkitHook, restart)
}
