package topology

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// tensorflow is TensorFlow 2 (and 1.x with estimators): each member finds the cluster and its own task in TF_CONFIG.
// The chief is chief 0 (master 0 in older programs) or, without one, worker 0.
//
// Sources: "Distributed training with TensorFlow", section "Setting up the TF_CONFIG environment variable"
// (tensorflow.org/guide/distributed_training), and "TF_CONFIG and distributed training" of Google's AI Platform
// (cloud.google.com/ai-platform/training/docs/distributed-training-details), which says that the cluster never has the
// key evaluator, as it is not part of the training cluster. Kubeflow omits it for the same reason (tf-operator pull
// request 650). The cluster is never sparse: every member sees all others.
var tensorflow = framework{
	name: "tensorflow",
	roles: []role{
		{name: "chief", most: 1},
		{name: "master", most: 1},
		{name: "worker"},
		{name: "ps", serves: true},
		{name: evaluator, most: 1, serves: true},
	},
	needs: [][]string{{"chief", "master", "worker"}},
	when:  domain.WhenChief,
	env: func(l *Layout) func(domain.Member) map[string]string {
		cluster := tfCluster(l.peers)
		return func(m domain.Member) map[string]string {
			return map[string]string{"TF_CONFIG": tfConfig(cluster, m.Role, m.Index)}
		}
	},
}

// evaluator is the task type that follows a training cluster without being part of it.
const evaluator = "evaluator"

// TFConfig returns the value of TF_CONFIG for a task: compact JSON with the task types sorted. cluster maps task types
// to addresses ("host:port") by index; an evaluator in it is left out.
func TFConfig(cluster map[string][]string, task string, index int) string {
	return tfConfig(tfCluster(cluster), task, index)
}

// tfCluster returns the JSON of the cluster, which is the same for all tasks.
func tfCluster(cluster map[string][]string) string {
	training := make(map[string][]string, len(cluster))
	for task, addresses := range cluster {
		if task != evaluator {
			training[task] = addresses
		}
	}
	return encode(training)
}

func tfConfig(cluster, task string, index int) string {
	return `{"cluster":` + cluster + `,"task":` + encode(struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}{task, index}) + `}`
}
