package topology

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// none is for programs that no other framework describes: the roles are the user's own, and their members find
// only what every member does.
var none = framework{name: "none", when: domain.WhenAll}
