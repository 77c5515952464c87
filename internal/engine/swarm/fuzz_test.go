package swarm

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// FuzzSlot shows that an object is known again by its labels as the revision that it is, and by its name as of its kind.
func FuzzSlot(f *testing.F) {
	kinds := append([]domain.Kind{domain.ClusterKind, domain.GPUPoolKind}, storetest.Kinds...)
	for i := range kinds {
		f.Add("lab", i, "job", 1)
		f.Add("", i, "", 1<<30)
		f.Add(strings.Repeat("c", 100), i, "a.b/c\x00", 7)
	}
	f.Fuzz(func(t *testing.T, cluster string, kind int, name string, revision int) {
		if kind < 0 || kind >= len(kinds) || revision < 1 || revision > math.MaxInt32 {
			t.Skip("there is none")
		}
		s, key := storeOf(cluster), engine.Key{Kind: kinds[kind], Name: name}
		if key.Kind == domain.ClusterKind {
			key.Name = ""
		}
		config := swarm.Config{Spec: swarm.ConfigSpec{Annotations: s.annotations(key, revision), Data: []byte("a")}}
		own := s.slot(key)
		last, err := own.latest([]swarm.Config{config})
		if err != nil || last.number != revision || slotOf(config) != own || !own.isItem() {
			t.Errorf("revision %d of %s is read as %d of %s (%v)", revision, own, last.number, slotOf(config), err)
		}
		if len(config.Spec.Name) > longestName || !strings.HasPrefix(config.Spec.Name, spec.ItemPrefix(key.Kind)) || spec.IsQuiet(config.Spec.Name) == key.Kind.Watched {
			t.Errorf("%q is too long for the name of an object, or not known as of its kind", config.Spec.Name)
		}
	})
}

// FuzzDecode shows that whatever an object holds is a document, which is the same once it was written again, or an
// error that names the object.
func FuzzDecode(f *testing.F) {
	for _, data := range []string{
		"", "null", "[]", `{"version":1}`, `{"version":1,"spec":{"name":"job","roles":{"w":{"replicas":-1}}},"counts":{"w":-1},"absent":{"w":[]}}`,
		`{"version":1,"before":{"before":{}},"scaled":{"w":{}},"assignments":{"a":{"gpus":[]}}}`, `{"version":1,"spec":{"hosts":{"a":{"joined":true}},"agent":{}}}`,
		`{"version":1,"spec":{"metrics":{"a":{"window":"-1s"}}}}`, `{"VERSION":1,"version":1,"revision":2,"Revision":2}`, `{"version":1,"spec":{"name":"\ud800"}}`,
		`{"version":1,"started_at":"9999-12-31T23:59:60Z"}`, `{"version":1e0}`,
	} {
		f.Add("1", []byte(data))
	}
	for _, label := range []string{"", "0", "-1", "+1", "01", "one", "99999999999999999999"} {
		f.Add(label, []byte(`{"version":1}`))
	}
	f.Fuzz(func(t *testing.T, label string, data []byte) {
		expectDocument[domain.ClusterDocument](t, label, data)
		expectDocument[domain.GroupDocument](t, label, data)
		expectDocument[domain.GPUPoolDocument](t, label, data)
		expectDocument[domain.AutoscalingPolicyDocument](t, label, data)
	})
}

func expectDocument[T any, P domain.Document[T]](t *testing.T, label string, data []byte) {
	t.Helper()
	key := engine.Key{Kind: P(new(T)).Kind()}
	annotations := func() swarm.Annotations { return storeOf("lab").annotations(key, 1) }
	get := func(data []byte) (T, error) {
		config := swarm.Config{Spec: swarm.ConfigSpec{Annotations: annotations(), Data: data}}
		config.Spec.Labels[spec.LabelRevision] = label
		return engine.Get[T, P](t.Context(), storeOf("lab", config), key.Name)
	}
	doc, err := get(data)
	if err != nil {
		corrupt, is := errors.AsType[*engine.CorruptError](err)
		if name := annotations().Name; !is || !strings.Contains(corrupt.Where, name) {
			t.Errorf("the error does not name the object %s: %v", name, err)
		}
		return
	}
	if number, err := strconv.Atoi(label); err != nil || P(&doc).Head().Revision != number {
		t.Errorf("revision %q is read as %d", label, P(&doc).Head().Revision)
	}
	written, err := json.Marshal(doc)
	if err != nil {
		t.Fatalf("what was read can't be written: %v", err)
	}
	again, err := get(written)
	if err != nil {
		t.Fatalf("%s is written, and can't be read: %v", written, err)
	}
	if rewritten, err := json.Marshal(again); err != nil || string(rewritten) != string(written) {
		t.Errorf("%s is written, and %s is read (%v)", written, rewritten, err)
	}
}

// FuzzLabels shows that whatever somebody makes of a member's label, it is the member that the containers' labels say,
// and that the change is noticed.
func FuzzLabels(f *testing.F) {
	own := []string{spec.LabelStop, spec.LabelRestarts, spec.LabelStarted, spec.LabelRestarted, spec.LabelStaged, spec.LabelSpec}
	keys := append([]string{spec.LabelCluster, spec.LabelGroup, spec.LabelRole, spec.LabelIndex, spec.LabelMember, spec.LabelHash, spec.LabelRun}, own...)
	for i := range keys {
		for _, value := range []string{"", "0", "007", "-1", "x", "99999999999999999999", "2026-01-02T03:04:05Z", "{}", "null", `{"seal":1}`, `{"restart":{"max_attempts":-1},"constraints":["node.id==x"]}`} {
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
		h.task(2, swarm.TaskStateShutdown, swarm.TaskStateFailed, 1, "").task(2, swarm.TaskStateRunning, swarm.TaskStateRunning, 0, "")
		// As the Engine returns it: the labels of the tasks are others.
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
			if o.Index < 0 || o.Run < 0 || o.Restarts < 0 || o.Name != id.Member(o.Index) || o.Group != id.Group || o.Role != id.Role {
				t.Errorf("with the label %s=%q, it is seen as %+v", keys[key], value, o)
			}
			isIdentity, changed := !slices.Contains(own, keys[key]), had == remove || before != value
			if isIdentity && changed && o.Live == nil {
				t.Errorf("that the label %s is %q (removed: %t) instead of %q is not noticed", keys[key], value, remove, before)
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
	must(t, err)
	return copied
}

// FuzzObserve shows that any service that a manager tells of is seen as no more members than it has.
func FuzzObserve(f *testing.F) {
	for _, h := range []*history{newHistory(f, domain.Role{}.RestartRule(), nil), poolOf(f, 2, domain.Role{}.RestartRule(), nil)} {
		data, err := json.Marshal(h.service.Spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, spec := range []string{
		"{}", `{"TaskTemplate":{"ContainerSpec":{"Configs":[{}],"Mounts":[{}],"Ulimits":[{}]}}}`, `{"TaskTemplate":{"ContainerSpec":{"Configs":[{}],"Secrets":[{}]}}}`,
		`{"TaskTemplate":{"Resources":{},"RestartPolicy":{},"Placement":{},"LogDriver":{}},"EndpointSpec":{"Ports":[{}]},"UpdateConfig":{}}`,
		`{"Mode":{"Global":{}},"TaskTemplate":{"NetworkAttachmentSpec":{"ContainerID":"a"}}}`, `{"TaskTemplate":{"ContainerSpec":{"Healthcheck":{"Test":[]},"Env":["","=","a","a=b=c"]}}}`,
	} {
		f.Add([]byte(spec))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		service := swarm.Service{ID: "service"}
		if json.Unmarshal(data, &service.Spec) != nil {
			t.Skip("no manager says so")
		}
		container := service.Spec.TaskTemplate.ContainerSpec
		if container != nil && (slices.Contains(container.Configs, nil) || slices.Contains(container.Secrets, nil) || slices.Contains(container.Ulimits, nil)) {
			t.Skip("no Swarm lists nothing")
		}
		total := spec.Replicas(service.Spec)
		if total > 1000 {
			t.Skip("no Swarm has so many")
		}
		v := view{
			cluster: spec.IdentityOf(service).Cluster, services: []swarm.Service{service}, seals: spec.SealsOf([]swarm.Service{service}), nodes: dockerapi.Nodes{},
			known: func() (spec.Lookup, error) {
				return spec.Lookup{Configs: map[string]swarm.Config{}, Hosts: map[string]string{}}, nil
			},
		}
		if members, err := v.observe(""); err != nil || len(members) > max(total, 1) {
			t.Errorf("a service of %d replicas has %d members (%v)", total, len(members), err)
		}
	})
}

// FuzzJoined shows that what the Swarm's label says of hosts that joined is read as it was written, or told of by the
// label's name.
func FuzzJoined(f *testing.F) {
	for _, text := range []string{"", "null", "{}", "[]", `{"gpu1":"ssh://gpu1"}`, `{"gpu1":null,"":""}`, `{"gpu1":1}`, `{"a":"b"} `, `{"a":"b"}c`} {
		f.Add("lab", text)
	}
	f.Fuzz(func(t *testing.T, cluster, text string) {
		label := joinedLabel(cluster)
		joined, again := map[string]string{}, map[string]string{}
		if err := readJoined(swarm.Spec{Annotations: swarm.Annotations{Labels: map[string]string{label: text}}}, cluster, joined); err != nil {
			if corrupt, is := errors.AsType[*engine.CorruptError](err); !is || !strings.Contains(corrupt.Where, label) {
				t.Errorf("the error does not name the label %s: %v", label, err)
			}
			return
		}
		labels, err := writeJoined(map[string]string{label: text, "theirs": "x"}, cluster, joined)
		if err != nil || labels["theirs"] != "x" && label != "theirs" {
			t.Fatalf("the labels are %v (%v)", labels, err)
		}
		if err := readJoined(swarm.Spec{Annotations: swarm.Annotations{Labels: labels}}, cluster, again); err != nil || !maps.Equal(joined, again) {
			t.Errorf("%v is written, and %v is read (%v)", joined, again, err)
		}
	})
}

// FuzzNodeSpec shows that whatever a node's labels say, a cluster takes back what it has set, and no more.
func FuzzNodeSpec(f *testing.F) {
	for _, note := range []string{"", "null", "{}", "x", `["gpu"]`, `["theirs","gpu"]`, `["trainyard.lab.labels"]`, `[1]`} {
		f.Add(note, "theirs", "x")
		f.Add(note, "gpu", "")
		f.Add(note, "trainyard.other.labels", `["gpu"]`)
	}
	f.Fuzz(func(t *testing.T, note, key, value string) {
		label := ownLabels("lab")
		live := swarm.NodeSpec{Annotations: swarm.Annotations{Labels: map[string]string{key: value, label: note}}}
		set := nodeSpec(live, "lab", domain.Host{Labels: map[string]string{"gpu": "v100"}})
		if set.Labels["gpu"] != "v100" || set.Labels[label] != `["gpu"]` {
			t.Errorf("with the note %q, the labels are %v", note, set.Labels)
		}
		back := nodeSpec(set, "lab", domain.Host{})
		var noted []string
		if json.Unmarshal([]byte(note), &noted) != nil {
			noted = nil
		}
		want := map[string]string{}
		if key != label && key != "gpu" && !slices.Contains(noted, key) {
			want[key] = value
		}
		if !maps.Equal(back.Labels, want) {
			t.Errorf("with the note %q, the labels are %v afterwards, want %v", note, back.Labels, want)
		}
	})
}
