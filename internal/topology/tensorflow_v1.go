package topology

import (
	"strconv"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// tensorflowV1 is parameter-server training with TensorFlow 1.x, whose programs build their ClusterSpec from the flags
// --ps_hosts, --worker_hosts, --job_name and --task_index. They find these values in the environment, with hosts
// separated by commas and no spaces. The chief is worker 0.
//
// Source: "Distributed TensorFlow", section "Putting it all together: example trainer program"
// (github.com/tensorflow/docs, site/en/r1/guide, and tensorflow.org/versions/r1.11/deploy/distributed).
var tensorflowV1 = framework{
	name:  "tensorflow_v1",
	roles: []role{{name: "worker"}, {name: "ps", serves: true}},
	needs: [][]string{{"ps"}, {"worker"}},
	when:  domain.WhenChief,
	env: func(l *Layout) func(domain.Member) map[string]string {
		servers, workers := strings.Join(l.peers["ps"], ","), strings.Join(l.peers["worker"], ",")
		return func(m domain.Member) map[string]string {
			return map[string]string{
				"PS_HOSTS":     servers,
				"WORKER_HOSTS": workers,
				"JOB_NAME":     m.Role,
				"TASK_INDEX":   strconv.Itoa(m.Index),
			}
		}
	},
}
