package resourcekit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// TimeoutsAttribute bounds what a resource does. The notes say what the time has to cover when the resource is
// written, and when it is destroyed.
func TimeoutsAttribute(ctx context.Context, fallback time.Duration, write, destroy string) schema.Attribute {
	description := func(what, note string) string {
		text := fmt.Sprintf("How long the %s may take, as a duration such as `90s` or `2h30m`. Defaults to `%gm`. %s", what, fallback.Minutes(), note)
		return strings.TrimSpace(text)
	}
	attribute := timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, CreateDescription: description("creation", write),
		Update: true, UpdateDescription: description("change", write),
		Delete: true, DeleteDescription: description("destruction", destroy),
	})
	if object, ok := attribute.(schema.SingleNestedAttribute); ok {
		object.MarkdownDescription = "How long operations may take. What was started when the time is over goes on. Terraform marks a resource as tainted whose creation took too long, and replaces it in the next apply: `terraform untaint` keeps it."
		return object
	}
	return attribute
}
