package swarm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// GPUs has the agents read those of the hosts whose Engines can be reached.
func (e *Engine) GPUs(ctx context.Context) (map[string]domain.HostGPUs, error) { return e.gpus(ctx) }

func (e *Engine) readGPUs(ctx context.Context) (map[string]domain.HostGPUs, error) {
	document, err := e.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	services, err := e.reads.services(ctx)
	if err != nil {
		return nil, err
	}
	tasks, err := e.reads.tasks(ctx)
	if err != nil {
		return nil, err
	}
	m, err := e.manager(ctx)
	if err != nil {
		return nil, err
	}
	engines, err := e.engines(ctx, m)
	if err != nil {
		return nil, err
	}
	members := map[string]string{} // by the container's ID
	for member, id := range running(e.cluster.Name, services, byService(tasks)) {
		members[id] = member
	}
	var mu sync.Mutex
	found := make(map[string]domain.HostGPUs, len(document.Spec.Hosts))
	err = inParallel(ctx, document.Spec.HostNames(), func(ctx context.Context, name string) error {
		gpus := e.hostGPUs(ctx, engines[document.Spec.Hosts[name].ID])
		for _, gpu := range gpus.GPUs {
			for i := range gpu.Processes {
				gpu.Processes[i].Member = members[gpu.Processes[i].Instance]
			}
		}
		mu.Lock()
		defer mu.Unlock()
		found[name] = gpus
		return nil
	})
	return found, err
}

// hostGPUs has the agent behind an Engine read its host's.
func (e *Engine) hostGPUs(ctx context.Context, reached client.APIClient) domain.HostGPUs {
	unknown := func(why string) domain.HostGPUs { return domain.HostGPUs{SampledAt: time.Now(), Unknown: why} }
	if reached == nil {
		return unknown("its Engine can't be reached: declare the host with its address")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSilent)
	defer cancel()
	agents, err := reached.ContainerList(ctx, container.ListOptions{
		Filters: filters.NewArgs(filters.Arg("label", labelCluster+"="+e.cluster.Name), filters.Arg("label", labelKind+"="+kindAgent)),
	})
	if err != nil {
		return unknown(err.Error())
	}
	if len(agents) == 0 {
		return unknown("no agent of the cluster runs there")
	}
	report, err := askReport(ctx, reached, agents[0].ID)
	if err != nil {
		return unknown(fmt.Sprintf("its agent did not tell: %v", err))
	}
	if report.GPUs.Unknown != "" {
		report.GPUs.Unknown += withoutRuntime(ctx, reached)
	}
	return report.GPUs
}

// nvidiaRuntime is what NVIDIA's toolkit calls the runtime that gives containers the GPUs that they ask for.
const nvidiaRuntime = "nvidia"

// withoutRuntime says what to do where it may be for the runtime of an Engine that its containers see no GPUs; "" where it is not.
func withoutRuntime(ctx context.Context, reached client.APIClient) string {
	info, err := reached.Info(ctx)
	if err != nil || info.DefaultRuntime == nvidiaRuntime {
		return ""
	}
	how := "nvidia-ctk runtime configure --runtime=docker --set-as-default, and restart the Engine"
	if _, installed := info.Runtimes[nvidiaRuntime]; !installed {
		how = "install NVIDIA's container toolkit, then " + how
	}
	return fmt.Sprintf(". The services of a Swarm run in the default runtime of each Engine, which is %q there: to use its GPUs, make it %q (%s)", info.DefaultRuntime, nvidiaRuntime, how)
}
