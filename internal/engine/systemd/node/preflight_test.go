//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

// docker is an Engine with some images. It first refuses some connections, or does not answer at all if it is away.
type docker struct {
	refuses int
	away    error
	images  []string
}

func (d *docker) Facts(context.Context) (containers.Facts, error) {
	if d.refuses > 0 {
		d.refuses--
		return containers.Facts{}, fmt.Errorf("%w: %w", containers.ErrAway, syscall.ECONNREFUSED)
	}
	return containers.Facts{}, d.away
}

func (d *docker) Pulls(_ context.Context, name string, policy domain.PullPolicy) (bool, error) {
	if policy == domain.PullNever && !slices.Contains(d.images, name) {
		return false, &containers.RefusedError{Reason: "there is no image " + name}
	}
	return false, nil
}

// TestImages: what a host lacks for a role with an image is reported with advice.
func TestImages(t *testing.T) {
	for name, test := range map[string]struct {
		docker docker
		// hook means that the container toolkit was just installed, and engine is when the Engine started, in seconds
		// from now, in its unit; 0 if unknown.
		hook    bool
		engine  int
		unit    string
		gpus    string
		policy  domain.PullPolicy
		mounts  []domain.Mount
		path    string
		says    []string
		warning bool
	}{
		"an Engine":       {},
		"one that starts": {docker: docker{refuses: 2}},
		"none": {docker: docker{away: errors.New("no such file")}, path: "image", says: []string{
			`"gpu1"`, `"worker"`, `"trainer:1"`, "no such file", "apt-get install -y docker.io",
			"systemctl enable --now docker",
		}},
		"GPUs":                {gpus: "GPU-1", hook: true, engine: 60, unit: "docker.service"},
		"no GPUs, no toolkit": {gpus: "void"},
		"GPUs, no toolkit": {gpus: "GPU-1", path: "gpus", says: []string{
			`"gpu1"`, `"worker"`, "apt-get install -y nvidia-container-toolkit", "systemctl restart docker",
			"its default runtime need not change",
		}},
		"GPUs, a toolkit since": {
			gpus: "GPU-1", hook: true, engine: -60, unit: "docker.service", path: "gpus",
			says: []string{`"gpu1"`, "systemctl restart docker,", "live-restore"}, warning: true,
		},
		"a toolkit since a snap": {
			gpus: "GPU-1", hook: true, engine: -60, unit: "snap.docker.dockerd.service", path: "gpus",
			says: []string{"systemctl restart snap.docker.dockerd,"}, warning: true,
		},
		"a snap, no toolkit": {
			gpus: "GPU-1", engine: -60, unit: "snap.docker.dockerd.service", path: "gpus",
			says: []string{"systemctl restart snap.docker.dockerd,"},
		},
		"a snap, no files": {
			unit: "snap.docker.dockerd.service", engine: -60,
			mounts: []domain.Mount{{Source: "/home/ops/data"}, {Type: domain.MountTmpfs, Target: "/scratch"}},
		},
		"a snap, a mount": {
			unit: "snap.docker.dockerd.service", engine: -60, mounts: []domain.Mount{{Source: "/data"}}, path: "image",
			says: []string{`"gpu1"`, `"worker"`, "/home", "snap remove docker"}, warning: true,
		},
		"a package, a mount":     {unit: "docker.service", engine: -60, mounts: []domain.Mount{{Source: "/data"}}},
		"no service, a toolkit":  {gpus: "GPU-1", hook: true},
		"an image that is there": {docker: docker{images: []string{"trainer:1"}}, policy: domain.PullNever},
		"one that is not": {
			policy: domain.PullNever, path: "image", says: []string{`"gpu1"`, "no image trainer:1", "docker load"},
		},
		"one that will be pulled": {policy: domain.PullIfNotPresent},
	} {
		t.Run(name, func(t *testing.T) {
			host := toolkitHost{root: t.TempDir(), folders: []string{"/usr/local/bin", "/usr/bin"}}
			if test.hook {
				path := filepath.Join(host.root, "/usr/bin/"+facts.ToolkitHook)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o755)); err != nil { //nolint:gosec // a program
					t.Fatal(err)
				}
			}
			runsIn := func(context.Context) service {
				if test.engine == 0 {
					return service{}
				}
				return service{name: test.unit, since: time.Now().Add(time.Duration(test.engine) * time.Second)}
			}
			spec := domain.MemberSpec{
				Host: "gpu1", Role: "worker", Image: "trainer:1",
				Env:       map[string]string{"NVIDIA_VISIBLE_DEVICES": test.gpus},
				Container: domain.Container{PullPolicy: test.policy}, Mounts: test.mounts,
			}
			problems := (&images{&test.docker, host, runsIn}).check(t.Context(), []domain.MemberSpec{spec})
			if test.path == "" {
				if len(problems) > 0 {
					t.Errorf("got %v", problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Path.String() != `roles["worker"].`+test.path ||
				problems[0].Warning != test.warning {
				t.Fatalf("got %v, want one problem at %s", problems, test.path)
			}
			for _, says := range test.says {
				if !strings.Contains(problems[0].Detail, says) {
					t.Errorf("%q is not in: %s", says, problems[0].Detail)
				}
			}
		})
	}
}
