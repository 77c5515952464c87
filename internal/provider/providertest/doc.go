// Package providertest is shared by the tests of the provider's packages: a stub engine, Terraform values, and randomly
// drawn values. It does not import the provider itself, so that the packages of the entities can use it in their tests.
package providertest
