package logs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// target is the group whose logs are written.
type target struct {
	cluster domain.ClusterRef
	group   string
	// triggers are those of the run to wait for; nil for the present run.
	triggers map[string]string
}

// plan is the part of a plan that is read, as printed by terraform show -json.
type plan struct {
	FormatVersion   string `json:"format_version"`
	ResourceChanges []struct {
		Address string          `json:"address"`
		Mode    string          `json:"mode"`
		Type    string          `json:"type"`
		Change  json.RawMessage `json:"change"` // other types have attributes of the same names with other values
	} `json:"resource_changes"`
}

// groupChange is what a plan does to a group.
type groupChange struct {
	address      string
	Actions      []string        `json:"actions"`
	Before       *groupState     `json:"before"`
	After        *groupState     `json:"after"`
	AfterUnknown json.RawMessage `json:"after_unknown"`
}

// groupState is a group before or after the apply.
type groupState struct {
	Name    string `json:"name"`
	Cluster struct {
		Name     string `json:"name"`
		Engine   string `json:"engine"`
		Endpoint string `json:"endpoint"`
	} `json:"cluster"`
	Triggers   map[string]string `json:"triggers"`
	Completion struct {
		When     domain.When `json:"when"`
		Deadline string      `json:"deadline"`
	} `json:"completion"`
}

// targetOf returns the group with this name in a plan, or the only one for "".
func targetOf(from io.Reader, group string, engines engine.Registry) (target, error) {
	var p plan
	const foreign = "--plan: not the output of terraform show -json: %w"
	if err := json.NewDecoder(from).Decode(&p); err != nil {
		return target{}, fmt.Errorf(foreign, err)
	}
	if p.FormatVersion == "" {
		return target{}, errors.New("--plan: not the output of terraform show -json: it has no format_version")
	}
	var found []groupChange
	var names []string
	for _, r := range p.ResourceChanges {
		if r.Mode != "managed" || r.Type != "trainyard_group" {
			continue
		}
		c := groupChange{address: r.Address}
		if err := json.Unmarshal(r.Change, &c); err != nil {
			return target{}, fmt.Errorf(foreign, err)
		}
		if c.After == nil {
			continue
		}
		names = append(names, cmp.Or(c.After.Name, c.address))
		if group == "" || c.After.Name == group {
			found = append(found, c)
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return target{}, errors.New("--plan: it has no trainyard_group")
	case len(found) == 0:
		return target{}, fmt.Errorf("--plan: it has no group %q; its groups are %s", group, strings.Join(names, ", "))
	case len(found) > 1:
		return target{}, fmt.Errorf("--plan: it has several groups: choose one of %s", strings.Join(names, ", "))
	}
	return found[0].target(engines)
}

// target returns the group after the apply. Its next run has to be told apart from the present one.
func (c groupChange) target(engines engine.Registry) (target, error) {
	after := c.After
	in := after.Cluster
	ref := domain.ClusterRef{Name: in.Name, Engine: cmp.Or(in.Engine, engines.Default()), Endpoint: in.Endpoint}
	const advice = "so its next run can't be told apart from its last: add one that changes with each run, such as " +
		"triggers = { run = var.run }"
	switch {
	case after.Name == "" || ref.Name == "":
		return target{}, fmt.Errorf("--plan: the names of %s and its cluster are not known before apply", c.address)
	case c.unknown("cluster", "endpoint") && len(engines[ref.Engine].Schemes) > 0:
		return target{}, fmt.Errorf("--plan: the endpoint of the cluster of %s is not known before apply: set one "+
			"that is, such as endpoint = \"ssh://ops@gpu1\"", c.address)
	case len(after.Triggers) == 0:
		return target{}, fmt.Errorf("--plan: %s has no triggers that are known before apply, %s", c.address, advice)
	case after.Completion.When == domain.WhenNever && after.Completion.Deadline == "" &&
		!c.unknown("completion", "deadline"):
		return target{}, fmt.Errorf("--plan: %s %s", c.address, endless)
	case c.keepsTriggers():
		return target{}, fmt.Errorf("--plan: %s changes, but none of its triggers that are known before apply do, %s",
			c.address, advice)
	}
	return target{ref, after.Name, after.Triggers}, nil
}

// keepsTriggers reports whether the group changes, and its document of before the apply has the triggers of after it.
func (c groupChange) keepsTriggers() bool {
	before, after := c.Before, c.After
	if before == nil || slices.Equal(c.Actions, []string{"no-op"}) ||
		before.Name != after.Name || before.Cluster.Name != after.Cluster.Name {
		return false
	}
	return includes(before.Triggers, after.Triggers)
}

// includes reports whether a group with these triggers has all of the wanted ones.
func includes(triggers, wanted map[string]string) bool {
	for name, value := range wanted {
		if got, found := triggers[name]; !found || got != value {
			return false
		}
	}
	return true
}

// unknown reports whether an attribute of an object is known only after the apply.
func (c groupChange) unknown(object, attribute string) bool {
	var objects, attributes map[string]json.RawMessage
	var is bool // true or false stand for a whole value
	return json.Unmarshal(c.AfterUnknown, &objects) == nil &&
		json.Unmarshal(objects[object], &attributes) == nil && json.Unmarshal(attributes[attribute], &is) == nil && is
}
