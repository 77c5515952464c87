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
		Address string `json:"address"`
		Mode    string `json:"mode"`
		Type    string `json:"type"`
		Change  struct {
			After *struct {
				Name    string `json:"name"`
				Cluster struct {
					Name     string `json:"name"`
					Engine   string `json:"engine"`
					Endpoint string `json:"endpoint"`
				} `json:"cluster"`
				Triggers map[string]string `json:"triggers"`
			} `json:"after"`
			AfterUnknown json.RawMessage `json:"after_unknown"`
		} `json:"change"`
	} `json:"resource_changes"`
}

// targetOf returns the group with this name in a plan, or the only one for "".
func targetOf(from io.Reader, group string, engines engine.Registry) (target, error) {
	var p plan
	if err := json.NewDecoder(from).Decode(&p); err != nil {
		return target{}, fmt.Errorf("--plan: not the output of terraform show -json: %w", err)
	}
	if p.FormatVersion == "" {
		return target{}, errors.New("--plan: not the output of terraform show -json: it has no format_version")
	}
	var found []target
	var names []string
	for _, r := range p.ResourceChanges {
		if r.Mode != "managed" || r.Type != "trainyard_group" || r.Change.After == nil {
			continue
		}
		after := r.Change.After
		names = append(names, after.Name)
		if group != "" && after.Name != group {
			continue
		}
		in := after.Cluster
		ref := domain.ClusterRef{Name: in.Name, Engine: cmp.Or(in.Engine, engines.Default()), Endpoint: in.Endpoint}
		if after.Name == "" || ref.Name == "" {
			return target{}, fmt.Errorf("--plan: the names of %s and its cluster are not known before apply", r.Address)
		}
		if unknownEndpoint(r.Change.AfterUnknown) && len(engines[ref.Engine].Schemes) > 0 {
			return target{}, fmt.Errorf("--plan: the endpoint of the cluster of %s is not known before apply: set one "+
				"that is, such as endpoint = \"ssh://ops@gpu1\"", r.Address)
		}
		if len(after.Triggers) == 0 {
			return target{}, fmt.Errorf("--plan: %s has no triggers that are known before apply, so its next run "+
				"can't be told apart from its last: add one that changes with each run, such as triggers = { run "+
				"= var.run }", r.Address)
		}
		found = append(found, target{ref, after.Name, after.Triggers})
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
	return found[0], nil
}

// unknownEndpoint reports whether the endpoint of a group's cluster is among what is unknown of the group.
func unknownEndpoint(unknown json.RawMessage) bool {
	var of struct {
		Cluster struct {
			Endpoint bool `json:"endpoint"`
		} `json:"cluster"`
	}
	return json.Unmarshal(unknown, &of) == nil && of.Cluster.Endpoint // true or false stand for a whole value
}
