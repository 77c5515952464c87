package nvml

import (
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// slot is where what is known of the device with an index is kept from one look to the next.
type slot struct {
	index int
	lane  lane

	mu    sync.Mutex
	known identity
}

// identity is what stays the same of a device.
type identity struct {
	domain.Device

	handle   device
	pciBusID string
	// remotes are what its NVLinks lead to.
	remotes []remote
	// complete tells that none of it failed to be read, so that it need not be read again.
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

// meet keeps a device's handle, and forgets what is known of another one. It returns what is known of this one.
func (s *slot) meet(handle device, uuid string) identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.UUID != uuid {
		s.known = identity{Device: domain.Device{UUID: uuid}}
	}
	s.known.handle = handle
	return s.known
}
