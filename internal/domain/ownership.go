package domain

import (
	"crypto/sha256"
	"encoding/hex"
)

// OwnershipKind is the kind of [Ownership].
var OwnershipKind = Kind{Name: "ownership", Noun: "ownership record"}

// Ownership records which instance of a Terraform resource an object of the cluster belongs to: a group, files, the
// cluster itself. A resource may have several instances for one object: with create_before_destroy, the replacement
// adopts what exists under its name before the former instance is destroyed, which must then leave it alone.
//
// It is a document of its own, so that nobody else who writes the object's document has to preserve it, and because
// images have none.
type Ownership struct {
	Header
	// Object names the object, such as "group lab/mnist".
	Object string `json:"object"`
	// Owner is the token that the instance keeps in its private state.
	Owner string `json:"owner"`
}

// Kind returns [OwnershipKind].
func (*Ownership) Kind() Kind { return OwnershipKind }

// Key returns a digest of the object's name, which may contain characters that a key can't.
func (o *Ownership) Key() string {
	digest := sha256.Sum256([]byte(o.Object))
	return hex.EncodeToString(digest[:16])
}
