// Package jointoken is the ephemeral resource trainyard_join_token.
package jointoken
