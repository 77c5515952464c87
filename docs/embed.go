// Package docs holds the provider's documentation as the registry shows it.
package docs

import _ "embed"

// Troubleshooting is the guide to errors, whose headings quote them.
//
//go:embed guides/troubleshooting.md
var Troubleshooting string
