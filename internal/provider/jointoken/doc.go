// Package jointoken implements the ephemeral resource trainyard_join_token.
package jointoken
