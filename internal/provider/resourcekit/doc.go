// Package resourcekit is shared by the resources and data sources of all entities: the session with its engines and
// plans, references to clusters, identities and imports, conversion between Terraform's values and the domain's,
// diagnostics, and validators. It knows no entity.
package resourcekit
