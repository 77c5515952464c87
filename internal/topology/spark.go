package topology

import (
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// spark is a Spark standalone cluster: one master, interchangeable workers, and optional submitters that run an
// application and end. With a submitter the group completes with submit 0; without one it is a service.
//
// SPARK_MASTER_HOST, SPARK_MASTER_PORT and SPARK_WORKER_PORT are Spark's own ("Spark Standalone Mode", section "Cluster
// Launch Scripts", spark.apache.org/docs/latest/spark-standalone.html). Workers and applications take the master's URL
// as an argument; images usually read it from SPARK_MASTER_URI.
var spark = framework{
	name: "spark",
	roles: []role{
		{name: "submit"},
		{name: "master", most: 1, serves: true},
		{name: "worker", interchangeable: true, serves: true},
	},
	needs: [][]string{{"master"}},
	when:  domain.WhenChief,
	env: func(l *Layout) func(domain.Member) map[string]string {
		master := l.first("master")
		host, port := split(master)
		return func(m domain.Member) map[string]string {
			env := map[string]string{"SPARK_MASTER_URI": "spark://" + master}
			switch m.Role {
			case "master":
				env["SPARK_MASTER_HOST"] = host
				env["SPARK_MASTER_PORT"] = port
			case "worker":
				env["SPARK_WORKER_PORT"] = strconv.Itoa(m.Port)
			}
			return env
		}
	},
}
