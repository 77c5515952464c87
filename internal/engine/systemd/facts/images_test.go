package facts

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestCheckImage checks the problems of hosts for members with an image.
func TestCheckImage(t *testing.T) {
	docker, toolkit := Docker{Socket: "/run/docker.sock"}, NVIDIA{Toolkit: true}
	for name, test := range map[string]struct {
		facts Facts
		gpus  bool
		want  []string
	}{
		"all":        {Facts{Docker: docker, NVIDIA: toolkit}, true, nil},
		"no GPUs":    {Facts{Docker: docker}, false, nil},
		"no toolkit": {Facts{Docker: docker}, true, []string{"lacks NVIDIA's container toolkit"}},
		"a silent one": {
			Facts{Docker: Docker{Socket: "/run/docker.sock", Silent: true}}, false,
			[]string{"has no running Docker Engine"},
		},
		"no Docker Engine": {Facts{NVIDIA: toolkit}, false, []string{"has no running Docker Engine"}},
		"neither of the two": {
			Facts{}, true, []string{"has no running Docker Engine", "lacks NVIDIA's container toolkit"},
		},
	} {
		problems := CheckImage(test.facts, domain.MemberSpec{Host: "gpu1", Role: "worker", Image: "trainer:1"},
			test.gpus)
		if len(problems) != len(test.want) {
			t.Errorf("%s: got %v", name, problems)
			continue
		}
		for i, says := range test.want {
			if !strings.HasPrefix(problems[i].Detail, `host "gpu1" `+says) ||
				!strings.Contains(problems[i].Detail, `"worker"`) {
				t.Errorf("%s: got %v, want what says %q", name, problems[i], says)
			}
		}
	}
}
