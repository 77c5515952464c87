// Package packed lets large attributes through the framework in one piece. A plan without change has the framework walk
// each value of a resource some fifty times, and once more for each attribute beside it. Of a packed attribute it sees
// one string, which is the attribute as Terraform encodes it, while Terraform and its users see what it stands for.
//
// [Server] translates between the two. [Type] is the type of such an attribute in a schema, on its top level, and
// [Value] the attribute in a model. Terraform encodes maps in the order of their keys: equal values are equal strings.
package packed
