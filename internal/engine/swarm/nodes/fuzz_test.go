package nodes

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// FuzzJoined: the Swarm's label of hosts that joined is read as it was written, or its error names the label.
func FuzzJoined(f *testing.F) {
	for _, text := range []string{
		"", "null", "{}", "[]", `{"gpu1":"ssh://gpu1"}`, `{"gpu1":null,"":""}`, `{"gpu1":1}`, `{"a":"b"} `,
		`{"a":"b"}c`,
	} {
		f.Add("lab", text)
	}
	f.Fuzz(func(t *testing.T, cluster, text string) {
		label := joinedLabel(cluster)
		joined, again := map[string]string{}, map[string]string{}
		if err := readJoined(swarm.Spec{Annotations: swarm.Annotations{Labels: map[string]string{label: text}}},
			cluster, joined); err != nil {
			if corrupt, is := errors.AsType[*engine.CorruptError](err); !is || !strings.Contains(corrupt.Where, label) {
				t.Errorf("the error does not name the label %s: %v", label, err)
			}
			return
		}
		labels, err := writeJoined(map[string]string{label: text, "theirs": "x"}, cluster, joined)
		if err != nil || labels["theirs"] != "x" && label != "theirs" {
			t.Fatalf("the labels are %v (%v)", labels, err)
		}
		if err := readJoined(swarm.Spec{Annotations: swarm.Annotations{Labels: labels}}, cluster, again); err != nil ||
			!maps.Equal(joined, again) {
			t.Errorf("%v is written, and %v is read (%v)", joined, again, err)
		}
	})
}

// FuzzNodeSpec: whatever a node's labels are, a cluster removes the labels that it has set, except those that another
// cluster has set, too, and no others.
func FuzzNodeSpec(f *testing.F) {
	for _, note := range []string{
		"", "null", "{}", "x", `["gpu"]`, `["theirs","gpu"]`, `["trainyard.lab.labels"]`, `[1]`,
	} {
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
		shared := listedLabels(live, key)
		if key == label || !strings.HasPrefix(key, "trainyard.") || !strings.HasSuffix(key, ".labels") {
			shared = nil
		}
		want := map[string]string{}
		if key != label && key != "gpu" && (!slices.Contains(noted, key) || slices.Contains(shared, key)) {
			want[key] = value
			if slices.Contains(shared, "gpu") {
				want["gpu"] = "v100"
			}
		}
		if !maps.Equal(back.Labels, want) {
			t.Errorf("with the note %q, the labels are %v afterwards, want %v", note, back.Labels, want)
		}
	})
}
