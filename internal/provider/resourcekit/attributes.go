package resourcekit

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// Beside is the path of an attribute of the same object.
func Beside(name string) path.Expression { return path.MatchRelative().AtParent().AtName(name) }

// ComputedText is a computed text.
func ComputedText(description string) schema.Attribute {
	return schema.StringAttribute{MarkdownDescription: description, Computed: true}
}
