// Package providertest has what the tests of the provider's packages share: an engine that is a stub, values as
// Terraform has them, and values drawn at random. It does not know the provider itself, so that the packages of
// the entities can be tested by it.
package providertest
