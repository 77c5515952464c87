package nvml

import (
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// slot keeps what is known of the device with an index between readings.
type slot struct {
	index     int
	callQueue callQueue

	mu    sync.Mutex
	known identity
}

// identity are the constant properties of a device.
type identity struct {
	domain.Device

	handle   device
	pciBusID string
	// remotes are the other ends of its NVLinks.
	remotes []remote
	// complete means that all of it was read successfully, and need not be read again.
	complete bool
}

func (s *slot) recall() identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

func (s *slot) remember(known identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known
}

// meet stores a device's handle, and discards what is known if it is another device than before. It returns what is
// known of this one.
func (s *slot) meet(handle device, uuid string) identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.UUID != uuid {
		s.known = identity{Device: domain.Device{UUID: uuid}}
	}
	s.known.handle = handle
	return s.known
}
