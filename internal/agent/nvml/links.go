package nvml

import (
	"errors"
	"maps"
	"slices"
)

// maxLinks is how many NVLinks a device may have (NVML_NVLINK_MAX_LINKS).
const maxLinks = 36

// remote is the other end of an NVLink: a device, or a switch, which connects all devices that have links to it.
type remote struct {
	busID    string
	isSwitch bool
}

// remotes returns the other ends of a device's active NVLinks.
func (l *look) remotes(d device) []remote {
	var remotes []remote
	for i := range maxLinks {
		active, err := try(l, "nvmlDeviceGetNvLinkState", func() (bool, error) { return d.getNvLinkState(i) })
		if errors.Is(err, invalidArgument) || errors.Is(err, notSupported) {
			continue // there is no such link
		}
		if err != nil {
			l.note("nvmlDeviceGetNvLinkState", err)
			break
		}
		if !active {
			continue
		}
		busID, err := try(l, "nvmlDeviceGetNvLinkRemotePciInfo",
			func() (string, error) { return d.getNvLinkRemotePCIBusID(i) })
		if err != nil {
			l.note("nvmlDeviceGetNvLinkRemotePciInfo", err)
			break
		}
		// Drivers that don't report this are older than today's switches.
		isSwitch, _ := try(l, "nvmlDeviceGetNvLinkRemoteDeviceType",
			func() (bool, error) { return d.getNvLinkRemoteDeviceType(i) })
		remotes = append(remotes, remote{busID, isSwitch})
	}
	return remotes
}

// link fills in which devices each device reaches.
func link(looks []look) {
	devices := make([]identity, len(looks))
	for i, l := range looks {
		devices[i] = l.known
	}
	reached := peers(devices)
	for i := range looks {
		looks[i].gpu.Links = reached[looks[i].gpu.UUID]
	}
}

// peers returns, by UUID, the sorted UUIDs of the devices that each device reaches by NVLink.
func peers(devices []identity) map[string][]string {
	leading := map[remote][]string{} // UUIDs of those with a link there
	for _, d := range devices {
		for _, r := range d.remotes {
			leading[r] = append(leading[r], d.UUID)
		}
	}
	reached := make(map[string][]string, len(devices))
	for _, d := range devices {
		set := map[string]bool{}
		for _, r := range d.remotes {
			if r.isSwitch {
				for _, uuid := range leading[r] {
					set[uuid] = true
				}
			}
			for _, peer := range devices {
				if peer.pciBusID != "" && peer.pciBusID == r.busID {
					set[peer.UUID] = true
				}
			}
		}
		delete(set, d.UUID)
		reached[d.UUID] = slices.Sorted(maps.Keys(set))
	}
	return reached
}
