package resourcekit

import (
	"context"
	"fmt"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// invalidMode is the summary of errors about permissions.
const invalidMode = "Invalid mode"

// octalMode matches file permissions in octal, without setuid, setgid and sticky bits.
var octalMode = regexp.MustCompile(`^0?[0-7]{3}$`)

// isMode checks that a string is file permissions in octal.
type isMode struct{}

func (isMode) Description(context.Context) string {
	return `Permissions of a file in octal digits, such as "0444".`
}

func (v isMode) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (isMode) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	switch mode := req.ConfigValue.ValueString(); {
	case !octalMode.MatchString(mode):
		resp.Diagnostics.AddAttributeError(req.Path, invalidMode,
			fmt.Sprintf(`%s: %q is not a valid mode; use octal digits from "0001" to "0777", such as "0444"`, req.Path,
				mode))
	case mode == "000" || mode == "0000":
		resp.Diagnostics.AddAttributeError(req.Path, invalidMode,
			fmt.Sprintf(`%s: with %q nobody could read the file; "0444" lets everybody read it, and "0400" only its `+
				"owner",
				req.Path, mode))
	}
}

// IsMode checks that a string is file permissions in octal.
func IsMode() validator.String { return isMode{} }
