package nodes

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

func TestDeparture(t *testing.T) {
	joined := func(names ...string) map[string]string {
		hosts := map[string]string{}
		for _, name := range names {
			hosts[name] = "ssh://" + name
		}
		return hosts
	}
	three := []swarm.Node{node("m1", reachable), node("m2", reachable), node("m3", reachable)}
	for name, test := range map[string]struct {
		facts       facts
		asked       string
		steps, last []string
		err         string
	}{
		"an adopted Swarm": {facts: facts{nodes: three}, asked: "id-m1"},
		"an adopted Swarm with our labels": {
			facts: facts{nodes: []swarm.Node{
				three[0], node("w", withLabels(map[string]string{"a": "", ownLabels("lab"): `["a"]`})),
			}},
			asked: "id-m1", steps: []string{"amend w"},
		},
		"all was formed": {
			facts: facts{nodes: append([]swarm.Node{node("w1")}, three...), joined: joined("m1", "m2", "m3", "w1")},
			asked: "id-m2", steps: []string{"demote m1", "demote m3", "take out w1", "take out m1", "take out m3"},
			last: []string{"take out m2"},
		},
		"a worker joined": {
			facts: facts{nodes: []swarm.Node{three[0], node("w1")}, joined: joined("w1")}, asked: "id-m1",
			steps: []string{"take out w1"},
		},
		"the manager asked joined": {
			facts: facts{nodes: three, joined: joined("m1")}, asked: "id-m1",
			last: []string{"demote m1", "take out m1"},
		},
		"quorum": {
			facts: facts{nodes: []swarm.Node{three[0], three[1], node("m3", lost)}, joined: joined("m2")},
			asked: "id-m1",
			err:   "2 managers, 1 reachable after the change, 2 needed",
		},
		"others' nodes would be left alone": {
			facts: facts{nodes: []swarm.Node{three[0], node("theirs")}, joined: joined("m1")}, asked: "id-m1",
			err: "nodes that are not the cluster's: theirs",
		},
		"others' nodes that are gone": {
			facts: facts{
				nodes: []swarm.Node{three[0], node("theirs", state(swarm.NodeStateDown))}, joined: joined("m1"),
			}, asked: "id-m1", last: []string{"take out m1"},
		},
		"hosts that came by themselves": {
			facts: facts{
				nodes: []swarm.Node{three[0], node("w1")}, joined: joined("m1"),
				stored: lab(map[string]domain.Host{"m1": {}, "w1": {}}),
			}, asked: "id-m1", last: []string{"take out m1"},
		},
		"all but the last have left": {
			facts: facts{nodes: three[:1], joined: joined("m1", "m2")}, asked: "id-m1", last: []string{"take out m1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			steps, last, err := test.facts.departure("lab", test.asked)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("the error is %v, it should say %s", err, test.err)
				}
				return
			}
			swarmtest.Must(t, err)
			if diff := cmp.Diff([][]string{test.steps, test.last}, [][]string{words(steps), words(last)}); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJoinedLabel(t *testing.T) {
	labels, err := writeJoined(map[string]string{"theirs": "1"}, "lab", map[string]string{"gpu1": "ssh://gpu1"})
	swarmtest.Must(t, err)
	if want := map[string]string{"theirs": "1", "trainyard.lab.joined": `{"gpu1":"ssh://gpu1"}`}; !cmp.Equal(labels,
		want) {
		t.Errorf("the labels are %v", labels)
	}
	joined := map[string]string{"gpu2": "ssh://gpu2"}
	swarmtest.Must(t, readJoined(swarm.Spec{Annotations: swarm.Annotations{Labels: labels}}, "lab", joined))
	if want := map[string]string{"gpu1": "ssh://gpu1", "gpu2": "ssh://gpu2"}; !cmp.Equal(joined, want) {
		t.Errorf("joined are %v", joined)
	}
	if labels, err = writeJoined(labels, "lab", nil); err != nil ||
		!cmp.Equal(labels, map[string]string{"theirs": "1"}) {
		t.Errorf("the labels are %v (%v)", labels, err)
	}
	labels["trainyard.lab.joined"] = "?"
	if err := readJoined(swarm.Spec{Annotations: swarm.Annotations{Labels: labels}}, "lab", joined); err == nil ||
		!strings.Contains(err.Error(), "label trainyard.lab.joined of the Swarm is corrupt") {
		t.Errorf("a broken label is read: %v", err)
	}
}
