//go:build linux

// Package acceptance holds what the acceptance tests of all engines share. The tests are in one folder per engine, and
// use the provider from outside: through a real Terraform or OpenTofu, with real engines.
package acceptance
