package autoscale

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Question is what an algorithm of the user's is asked: what the policy sees, and its bounds.
type Question struct {
	Cluster string    `json:"cluster"`
	Group   string    `json:"group"`
	Role    string    `json:"role"`
	Now     time.Time `json:"now"`
	// Count is the number of members that the role is to have so far, and Ready how many of them do their work by now.
	Count int `json:"count"`
	Ready int `json:"ready"`
	Min   int `json:"min"`
	Max   int `json:"max"`
	// Metrics are the values of the policy's other metrics by name; null where one is missing or stale.
	Metrics map[string]*float64 `json:"metrics"`
	// Roles are the counts of the group's other roles.
	Roles map[string]int `json:"roles,omitempty"`
}

// Ask returns the question about a role as it is seen.
func (a *Autoscaler) Ask(seen Seen) Question {
	q := Question{
		Cluster: a.policy.Cluster, Group: a.policy.Group, Role: a.policy.Role, Now: seen.Now, Count: seen.Count, Ready: seen.Ready,
		Min: a.policy.Min, Max: a.policy.Max, Metrics: map[string]*float64{}, Roles: seen.Roles,
	}
	for _, name := range a.metrics {
		metric := a.policy.Metrics[name]
		if !metric.Algorithm.Measures() {
			continue
		}
		q.Metrics[name] = nil
		if found, missing := measured(&metric, name, &seen); missing == "" {
			q.Metrics[name] = new(found.Value)
		}
	}
	return q
}

// Answer is what an algorithm of the user's has said.
type Answer struct {
	// Count is what it asks for; nil where Action says it, or where it has said nothing.
	Count *int
	// Action is "up", "down" or "none": one member more, one less, or as many.
	Action string
	// Why says why there is no answer; "" where there is one.
	Why string
}

// The actions of an answer.
const (
	actionUp   = "up"
	actionDown = "down"
	actionNone = "none"
)

// ParseAnswer reads an answer: {"count": 4}, or {"action": "up"}, "down" or "none". What is none of these is no answer,
// and says why.
func ParseAnswer(data []byte) Answer {
	var said struct {
		Count  *float64 `json:"count"`
		Action *string  `json:"action"`
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return Answer{Why: fmt.Sprintf("its answer, %.40q, is no JSON such as {\"count\": 4} or {\"action\": \"up\"}", strings.TrimSpace(string(data)))}
	}
	switch {
	case said.Count != nil && said.Action != nil:
		return Answer{Why: "its answer has both a count and an action"}
	case said.Count != nil && (*said.Count < 0 || *said.Count > domain.MaxReplicas || *said.Count != math.Trunc(*said.Count)):
		return Answer{Why: fmt.Sprintf("its count is %g, and not a number of members from 0 to %d", *said.Count, domain.MaxReplicas)}
	case said.Count != nil:
		return Answer{Count: new(int(*said.Count))}
	case said.Action == nil:
		return Answer{Why: "its answer has neither a count nor an action"}
	case *said.Action != actionUp && *said.Action != actionDown && *said.Action != actionNone:
		return Answer{Why: fmt.Sprintf("its action is %.40q, and not up, down or none", *said.Action)}
	}
	return Answer{Action: *said.Action}
}

// external asks for what an algorithm of the user's has said. Without an answer it changes nothing, and keeps others
// from removing members.
//
// Up, down and none are the actions of the agents that learn to scale in "Elastic scaling of Kafka with deep
// reinforcement learning", by a vector of metrics at fixed time steps; see [Question] for ours.
func external(in asking) proposal {
	switch {
	case in.answer.Why != "":
		return undecided(in, in.answer.Why)
	case in.answer.Count != nil:
		return proposal{count: *in.answer.Count, why: say("it answered ", *in.answer.Count)}
	case in.answer.Action == actionUp:
		return proposal{count: in.count + 1, why: "it answered up"}
	case in.answer.Action == actionDown:
		return proposal{count: max(in.count-1, 0), why: "it answered down"}
	case in.answer.Action == actionNone:
		return proposal{count: in.count, why: "it answered none"}
	}
	return undecided(in, "it was not asked")
}
