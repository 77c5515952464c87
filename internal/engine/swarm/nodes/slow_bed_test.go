//go:build linux

package nodes

import (
	"net/http"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// slow: Engines return errors, and yet a Swarm is created and joined. Its label is written, so that hosts leave again.
func (s site) slow() {
	first, second := s.bed.Nodes[0], s.bed.Nodes[1]
	creates, joins := testbed.NewProxy(s.T, first), testbed.NewProxy(s.T, second)
	creates.On(testbed.Fault{
		Match: testbed.Matching(http.MethodPost, "/swarm/init"), Nth: 1,
		Do: func(next http.Handler) http.Handler {
			return swarmtest.Before(func() {
				// If it fails, so does the apply, unless this is the very case.
				_, _ = first.Client().SwarmInit(s.ctx,
					swarm.InitRequest{ListenAddr: listenAddress, AdvertiseAddr: first.Address.String()})
			})(testbed.Fail("context deadline exceeded")(next))
		},
	})
	joins.On(testbed.Fault{Match: testbed.Matching(http.MethodPost, "/swarm/join"), Nth: 1, Do: testbed.DropAnswer()})
	hosts := map[string]domain.Host{
		first.Name: {Address: creates.Host(), Role: domain.HostManager}, second.Name: {Address: joins.Host()},
	}
	e := s.open("")
	s.apply(e, hosts)
	s.settled(e, hosts)
	swarmtest.Must(s.T, e.Dissolve(s.ctx))
	s.bare(first, second)
}
