package autoscale

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Question is what the user's own algorithm receives: what the policy sees, and its bounds.
type Question struct {
	Cluster string    `json:"cluster"`
	Group   string    `json:"group"`
	Role    string    `json:"role"`
	Now     time.Time `json:"now"`
	// Count is the number of members that the role should have so far, and Ready how many of them are working.
	Count int `json:"count"`
	Ready int `json:"ready"`
	Min   int `json:"min"`
	Max   int `json:"max"`
	// Metrics are the values of the policy's other metrics by name; null if missing or stale.
	Metrics map[string]*float64 `json:"metrics"`
	// Roles are the counts of the group's other roles.
	Roles map[string]int `json:"roles,omitempty"`
}

// Ask returns the question about a role.
func (a *Autoscaler) Ask(seen Seen) Question {
	q := Question{
		Cluster: a.policy.Cluster, Group: a.policy.Group, Role: a.policy.Role, Now: seen.Now, Count: seen.Count,
		Ready: seen.Ready,
		Min:   a.policy.Min, Max: a.policy.Max, Metrics: map[string]*float64{}, Roles: seen.Roles,
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

// Answer is the answer of the user's own algorithm.
type Answer struct {
	// Count is what it asks for; nil if Action says it, or if there is no answer.
	Count *int
	// Action is "up", "down" or "none": one more member, one fewer, or as many.
	Action string
	// Why says why there is no answer; "" if there is one.
	Why string
}

// The actions of an answer.
const (
	actionUp   = "up"
	actionDown = "down"
	actionNone = "none"
)

// ParseAnswer parses an answer: {"count": 4}, or {"action": "up"}, "down" or "none". Anything else counts as no answer,
// with a reason.
func ParseAnswer(data []byte) Answer {
	var answer struct {
		Count  *float64 `json:"count"`
		Action *string  `json:"action"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return Answer{Why: fmt.Sprintf("its answer, %.40q, is not JSON such as {\"count\": 4} or {\"action\": \"up\"}",
			strings.TrimSpace(string(data)))}
	}
	switch {
	case answer.Count != nil && answer.Action != nil:
		return Answer{Why: "its answer has both a count and an action"}
	case answer.Count != nil &&
		(*answer.Count < 0 || *answer.Count > domain.MaxReplicas || *answer.Count != math.Trunc(*answer.Count)):
		return Answer{
			Why: fmt.Sprintf("its count is %g; it must be a whole number from 0 to %d", *answer.Count,
				domain.MaxReplicas),
		}
	case answer.Count != nil:
		return Answer{Count: new(int(*answer.Count))}
	case answer.Action == nil:
		return Answer{Why: "its answer has neither a count nor an action"}
	case *answer.Action != actionUp && *answer.Action != actionDown && *answer.Action != actionNone:
		return Answer{Why: fmt.Sprintf("its action is %.40q; it must be up, down or none", *answer.Action)}
	}
	return Answer{Action: *answer.Action}
}

// external asks for what the user's own algorithm answered. Without an answer, it changes nothing and keeps others from
// removing members.
//
// Up, down and none are the actions of the agents in "Elastic scaling of Kafka with deep reinforcement learning", which
// learn to scale from a vector of metrics at fixed time steps; see [Question] for ours.
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
