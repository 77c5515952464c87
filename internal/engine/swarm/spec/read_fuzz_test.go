package spec

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// FuzzService: any service that a manager returns can be read, and always reads the same.
func FuzzService(f *testing.F) {
	for _, spec := range []domain.MemberSpec{rich(), richPool()} {
		service, _ := rendered(f, spec)
		f.Add([]byte(encode(service.Spec)))
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
		var spec swarm.ServiceSpec
		if json.Unmarshal(data, &spec) != nil {
			t.Skip("no manager says so")
		}
		if listsNothing(spec.TaskTemplate.ContainerSpec) {
			t.Skip("no Swarm lists nothing")
		}
		k := Lookup{Configs: map[string]swarm.Config{}, Hosts: map[string]string{}}
		if diff := cmp.Diff(encode(read(spec, k)), encode(read(clone(t, spec), k))); diff != "" {
			t.Errorf("it is read in two ways (-first +second):\n%s", diff)
		}
	})
}

// listsNothing reports whether a container has a null list entry, which a Swarm can't store.
func listsNothing(container *swarm.ContainerSpec) bool {
	return container != nil && (slices.Contains(container.Configs, nil) || slices.Contains(container.Secrets, nil) ||
		slices.Contains(container.Ulimits, nil))
}
