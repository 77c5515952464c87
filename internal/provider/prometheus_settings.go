package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

type prometheusLoginModel struct {
	Username    *string `tfsdk:"username"`
	Password    *string `tfsdk:"password"`
	BearerToken *string `tfsdk:"bearer_token"`
	Insecure    *bool   `tfsdk:"insecure"`
}

func (m prometheusLoginModel) expand() prometheus.Credentials {
	return prometheus.Credentials{
		Username: resourcekit.Value(m.Username), Password: engine.Secret(resourcekit.Value(m.Password)),
		BearerToken: engine.Secret(resourcekit.Value(m.BearerToken)),
		Insecure:    resourcekit.Value(m.Insecure),
	}
}

// prometheusAttribute is the credentials for the Prometheus servers that data sources query.
func prometheusAttribute() schema.Attribute {
	return schema.MapNestedAttribute{
		MarkdownDescription: "Credentials for the Prometheus servers that `trainyard_utilisation` and " +
			"`trainyard_policy_backtest` query, by host, with the port if their `url` has one, such as " +
			"`prometheus.example.com:9090`. " +
			"Omit servers that need no credentials. Credentials are set here rather than in the data source because " +
			"the data source is stored in the state.",
		Optional:   true,
		Validators: []validator.Map{mapvalidator.NoNullValues()},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"username": schema.StringAttribute{
				MarkdownDescription: "User name. Requires `password`.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.AlsoRequires(resourcekit.Beside("password"))},
			},
			"password": schema.StringAttribute{
				MarkdownDescription: "Password. Requires `username`.",
				Optional:            true,
				Sensitive:           true,
				Validators: []validator.String{
					stringvalidator.AlsoRequires(resourcekit.Beside("username")),
					stringvalidator.ExactlyOneOf(resourcekit.Beside("bearer_token")),
				},
			},
			"bearer_token": schema.StringAttribute{
				MarkdownDescription: "Bearer token, instead of `username` and `password`.",
				Optional:            true,
				Sensitive:           true,
			},
			"insecure": schema.BoolAttribute{
				MarkdownDescription: "Whether the credentials may be sent unencrypted over `http://`, where anyone " +
					"on the path can read them. Defaults to `false`: they are sent only over `https://` and to this " +
					"machine itself. Certificates are always verified.",
				Optional: true,
			},
		}},
	}
}
