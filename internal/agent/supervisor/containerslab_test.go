//go:build linux

package supervisor_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// shellImage is the image that members run: a shell, and some programs for it.
const shellImage = "shell:1"

// loadOnce loads the image once onto the host that tests share.
var loadOnce sync.Once

// newContainerLab starts a supervisor for a cluster of this name, on a host with a Docker Engine that the tests share.
func newContainerLab(t *testing.T, cluster string) *hostLab {
	t.Helper()
	bed := testbed.SharedHosts(t, testbed.HostOptions{Hosts: 1, Docker: true})
	loadOnce.Do(func() {
		acctest.LoadShell(t, bed, shellImage, "cat", "sleep", "ls", "stat", "id", "tail", "touch", "rm", "seq",
			"setsid", "flock", "df", "sh")
	})
	var l *hostLab
	t.Cleanup(func() { // when its members are gone
		if l == nil {
			return
		}
		if left := l.containers(); len(left) > 0 {
			l.Errorf("there are still the containers %+v", left)
		}
		// Those of other tests' containers are nobody's for a moment, before their containers and after them.
		l.eventually("the volumes without names to be gone", func() bool {
			volumes, err := l.host.Client().VolumeList(testContext,
				volume.ListOptions{Filters: filters.NewArgs(filters.Arg("dangling", "true"))})
			if err != nil {
				l.Error(err)
			}
			return !slices.ContainsFunc(volumes.Volumes,
				func(left *volume.Volume) bool { return len(left.Name) == anonymousVolume })
		})
	})
	l = newHostLabOn(t, bed.Hosts[0], cluster)
	return l
}

// anonymousVolume is the length of the names that Docker gives to volumes.
const anonymousVolume = 64

// containers returns those of the cluster, even after the test has ended.
func (l *hostLab) containers() []container.Summary {
	l.Helper()
	listed, err := l.host.Client().ContainerList(testContext, container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("label", domain.LabelCluster+"="+l.cluster)),
	})
	if err != nil {
		l.Error(err)
	}
	return listed
}

// contained returns the specification of a member that runs a shell script in a container.
func (l *hostLab) contained(name, script string) domain.MemberSpec {
	spec := l.member(name)
	spec.Image, spec.Args, spec.Env = shellImage, []string{"-c", script}, map[string]string{}
	return spec
}

// inspect returns the container of a running member.
func (l *hostLab) inspect(spec domain.MemberSpec) container.InspectResponse {
	l.Helper()
	found, err := l.host.Client().ContainerInspect(l.Context(), l.containerOf(spec))
	l.must(err)
	return found
}

func (l *hostLab) containerOf(spec domain.MemberSpec) string {
	return containers.Name(l.cluster, spec.Name, l.state(spec).Instance)
}

// restarting makes a member restart when it fails.
func restarting(spec *domain.MemberSpec, attempts int) {
	spec.Restart = domain.RestartRule{
		Condition: domain.RestartOnFailure, MaxAttempts: attempts, Final: domain.DefaultFinalExitCodes,
	}
}

// short is a grace period for members that don't end by themselves.
const short = domain.Duration(300 * time.Millisecond)
