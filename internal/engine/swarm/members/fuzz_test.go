package members

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// FuzzLabels: whatever somebody changes a member's label to, the member is still recognised by the containers' labels,
// and the change is detected.
func FuzzLabels(f *testing.F) {
	own := []string{
		spec.LabelStop, spec.LabelRestarts, spec.LabelStarted, spec.LabelRestarted, spec.LabelStaged, spec.LabelSpec,
	}
	keys := append([]string{
		spec.LabelCluster, spec.LabelGroup, spec.LabelRole, spec.LabelIndex, spec.LabelMember, spec.LabelHash,
		spec.LabelRun,
	}, own...)
	for i := range keys {
		for _, value := range []string{
			"", "0", "007", "-1", "x", "99999999999999999999", "2026-01-02T03:04:05Z", "{}", "null", `{"seal":1}`,
			`{"restart":{"max_attempts":-1},"constraints":["node.id==x"]}`,
		} {
			f.Add(i, value, false, true)
			f.Add(i, value, false, false)
		}
		f.Add(i, "", true, true)
		f.Add(i, "", true, false)
	}
	f.Fuzz(func(t *testing.T, key int, value string, remove, container bool) {
		if key < 0 || key >= len(keys) {
			t.Skip("there is no such label")
		}
		h := newHistory(t, domain.Role{}.RestartRule(), nil)
		h.task(2, swarm.TaskStateShutdown, swarm.TaskStateFailed, 1, "").task(2, swarm.TaskStateRunning,
			swarm.TaskStateRunning, 0, "")
		// As the Engine returns it: the tasks have other labels.
		h.service.Spec = listed(t, h.service.Spec)
		labels := h.service.Spec.Labels
		if container {
			labels = h.service.Spec.TaskTemplate.ContainerSpec.Labels
		}
		before, had := labels[keys[key]]
		labels[keys[key]] = value
		if remove {
			delete(labels, keys[key])
		}
		members, err := h.view(ready).observe("")
		if err != nil {
			t.Fatal(err)
		}
		if len(members) > 1 {
			t.Errorf("one member is seen as %d", len(members))
		}
		for _, o := range members {
			id := spec.IdentityOf(h.service)
			if o.Index < 0 || o.Run < 0 || o.Restarts < 0 || o.Name != id.Member(o.Index) || o.Group != id.Group ||
				o.Role != id.Role {
				t.Errorf("with the label %s=%q, it is seen as %+v", keys[key], value, o)
			}
			isIdentity, changed := !slices.Contains(own, keys[key]), had == remove || before != value
			if isIdentity && changed && o.Live == nil {
				t.Errorf("that the label %s is %q (removed: %t) instead of %q is not noticed", keys[key], value, remove,
					before)
			}
		}
	})
}

// listed returns a service as the Engine lists it.
func listed(t *testing.T, spec swarm.ServiceSpec) (copied swarm.ServiceSpec) {
	t.Helper()
	data, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(data, &copied)
	}
	swarmtest.Must(t, err)
	return copied
}

// FuzzObserve: any service that a manager lists is observed as no more members than it has.
func FuzzObserve(f *testing.F) {
	for _, h := range []*history{
		newHistory(f, domain.Role{}.RestartRule(), nil), poolOf(f, 2, domain.Role{}.RestartRule(), nil),
	} {
		data, err := json.Marshal(h.service.Spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, spec := range []string{
		"{}", `{"TaskTemplate":{"ContainerSpec":{"Configs":[{}],"Mounts":[{}],"Ulimits":[{}]}}}`,
		`{"TaskTemplate":{"ContainerSpec":{"Configs":[{}],"Secrets":[{}]}}}`,
		`{"TaskTemplate":{"Resources":{},"RestartPolicy":{},"Placement":{},"LogDriver":{}},"EndpointSpec":{"Ports":[{}]},"UpdateConfig":{}}`,
		`{"Mode":{"Global":{}},"TaskTemplate":{"NetworkAttachmentSpec":{"ContainerID":"a"}}}`,
		`{"TaskTemplate":{"ContainerSpec":{"Healthcheck":{"Test":[]},"Env":["","=","a","a=b=c"]}}}`,
	} {
		f.Add([]byte(spec))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		service := swarm.Service{ID: "service"}
		if json.Unmarshal(data, &service.Spec) != nil {
			t.Skip("no manager says so")
		}
		container := service.Spec.TaskTemplate.ContainerSpec
		if container != nil && (slices.Contains(container.Configs, nil) || slices.Contains(container.Secrets, nil) ||
			slices.Contains(container.Ulimits, nil)) {
			t.Skip("no Swarm lists nothing")
		}
		total := spec.Replicas(service.Spec)
		if total > 1000 {
			t.Skip("no Swarm has so many")
		}
		v := view{
			cluster: spec.IdentityOf(service).Cluster, services: []swarm.Service{service},
			seals: spec.SealsOf([]swarm.Service{service}), nodes: dockerapi.Nodes{},
			known: func() (spec.Lookup, error) {
				return spec.Lookup{Configs: map[string]swarm.Config{}, Hosts: map[string]string{}}, nil
			},
		}
		if members, err := v.observe(""); err != nil || len(members) > max(total, 1) {
			t.Errorf("a service of %d replicas has %d members (%v)", total, len(members), err)
		}
	})
}
