package resourcekit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// TimeoutsAttribute is the timeouts of a resource. The notes say what the time includes for writes and for destroy.
func TimeoutsAttribute(ctx context.Context, fallback time.Duration, write, destroy string) schema.Attribute {
	description := func(what, note string) string {
		text := fmt.Sprintf("Maximum duration of %s, such as `90s` or `2h30m`. Defaults to `%gm`. %s", what,
			fallback.Minutes(), note)
		return strings.TrimSpace(text)
	}
	attribute := timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, CreateDescription: description("creation", write),
		Update: true, UpdateDescription: description("an update", write),
		Delete: true, DeleteDescription: description("destruction", destroy),
	})
	if object, ok := attribute.(schema.SingleNestedAttribute); ok {
		object.MarkdownDescription = "Time limits of operations. Work that has already started on the cluster " +
			"continues after a timeout. If creation times out, Terraform marks the resource as tainted and replaces " +
			"it in the next apply; run `terraform untaint` to keep it."
		return object
	}
	return attribute
}
