package main

// status is the state of a cluster, as returned by GET /status.
type status struct {
	Brokers           int `json:"brokers"`
	ReplicationFactor int `json:"replication_factor"`
	Reassigning       int `json:"reassigning"`
	// Skew is the difference between the largest and the smallest number of replicas on a broker, divided by the mean.
	Skew            float64 `json:"skew"`
	UnderReplicated int     `json:"under_replicated"`
	// MovedBytes is how much moves have copied since the program started.
	MovedBytes int64 `json:"moved_bytes"`
}

func statusOf(s state, moved int64) status {
	alive := s.alive()
	status := status{Brokers: len(alive), Reassigning: s.reassigning(), MovedBytes: moved}
	for _, h := range s.partitions {
		status.ReplicationFactor = max(status.ReplicationFactor, len(h.replicas))
		if len(h.inSync) < len(h.replicas) {
			status.UnderReplicated++
		}
	}
	owned := s.replicas()
	most, least, all := 0, 0, 0
	for i, b := range alive {
		if i == 0 {
			least = owned[b]
		}
		most, least, all = max(most, owned[b]), min(least, owned[b]), all+owned[b]
	}
	if all > 0 {
		status.Skew = float64(most-least) * float64(len(alive)) / float64(all)
	}
	return status
}
