// Package packed passes large attributes through the framework in one piece. During a plan without changes, the
// framework walks each value of a resource some fifty times, and once more for each other attribute. Of a packed
// attribute it sees a single string, the attribute as Terraform encodes it, while Terraform and its users see the
// ordinary value.
//
// [Server] translates between the two. [Type] is the type of such an attribute at the top level of a schema, and
// [Value] the attribute in a model. Terraform encodes maps in the order of their keys, so equal values are equal
// strings.
package packed
