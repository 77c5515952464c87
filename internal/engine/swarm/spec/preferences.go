package spec

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// preferencesOf returns how the Swarm distributes the members that share a service.
func preferencesOf(spec domain.MemberSpec) []swarm.PlacementPreference {
	if !spec.Shared || spec.Placement.SpreadBy == "" {
		return nil
	}
	return []swarm.PlacementPreference{
		{Spread: &swarm.SpreadOver{SpreadDescriptor: nodeLabel + spec.Placement.SpreadBy}},
	}
}

// spreadLabel returns the node label over whose values a preference spreads tasks. The part before the label is
// case-insensitive, as in Swarm.
func spreadLabel(preference swarm.PlacementPreference) (label string, isLabel bool) {
	if preference.Spread == nil {
		return "", false
	}
	descriptor := preference.Spread.SpreadDescriptor
	if len(descriptor) <= len(nodeLabel) || !strings.EqualFold(descriptor[:len(nodeLabel)], nodeLabel) {
		return "", false
	}
	return descriptor[len(nodeLabel):], true
}

// spreadsBy returns the label by which a service spreads its tasks first, and the index of that preference; -1 if there
// is none.
func spreadsBy(placement *swarm.Placement) (label string, at int) {
	if placement == nil {
		return "", -1
	}
	for i, preference := range placement.Preferences {
		if label, isLabel := spreadLabel(preference); isLabel {
			return label, i
		}
	}
	return "", -1
}

// overlayPreferences puts the wanted label first, in place of the role's former one, even if somebody changed that. All
// other preferences are kept.
func overlayPreferences(live, want *swarm.Placement, formerly string) []swarm.PlacementPreference {
	wanted, _ := spreadsBy(want)
	is, at := spreadsBy(live)
	if is == wanted {
		return live.Preferences
	}
	others := slices.Clone(live.Preferences)
	if formerly != "" && at >= 0 {
		others = slices.Delete(others, at, at+1)
	}
	others = slices.DeleteFunc(others, func(p swarm.PlacementPreference) bool {
		label, isLabel := spreadLabel(p)
		return isLabel && label == wanted
	})
	return slices.Concat(want.Preferences, others)
}
