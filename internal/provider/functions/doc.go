// Package functions implements the functions of the provider.
package functions
