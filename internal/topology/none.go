package topology

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// none is for programs that no other framework describes: the roles are the user's own, and members get only what every
// member gets.
var none = framework{name: "none", when: domain.WhenAll}
