// Package resourcekit is what the resources and data sources of all entities have in common: the session with its
// engines and plans, references to clusters, identities and imports, the way between Terraform's values and the
// domain's, diagnostics, and validators. It knows no entity.
package resourcekit
