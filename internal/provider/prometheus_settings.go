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
		Username: resourcekit.Value(m.Username), Password: engine.Secret(resourcekit.Value(m.Password)), BearerToken: engine.Secret(resourcekit.Value(m.BearerToken)),
		Insecure: resourcekit.Value(m.Insecure),
	}
}

// prometheusAttribute is how to log in to the Prometheus servers that data sources ask.
func prometheusAttribute() schema.Attribute {
	return schema.MapNestedAttribute{
		MarkdownDescription: "How to log in to the Prometheus servers that `trainyard_utilisation` and `trainyard_policy_backtest` ask, by host, with the port where their `url` has one, such as `prometheus.example.com:9090`. " +
			"Those that ask for nothing need not be here. They are here, and not in the data source, because that is kept in the state.",
		Optional:   true,
		Validators: []validator.Map{mapvalidator.NoNullValues()},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"username": schema.StringAttribute{
				MarkdownDescription: "Name of the user; it takes a `password`.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.AlsoRequires(resourcekit.Beside("password"))},
			},
			"password": schema.StringAttribute{
				MarkdownDescription: "Password; it takes a `username`.",
				Optional:            true,
				Sensitive:           true,
				Validators:          []validator.String{stringvalidator.AlsoRequires(resourcekit.Beside("username")), stringvalidator.ExactlyOneOf(resourcekit.Beside("bearer_token"))},
			},
			"bearer_token": schema.StringAttribute{
				MarkdownDescription: "Bearer token, in the place of user and password.",
				Optional:            true,
				Sensitive:           true,
			},
			"insecure": schema.BoolAttribute{
				MarkdownDescription: "Whether the credentials may be sent unencrypted, by `http://`, where anybody on the way can read them. Defaults to `false`: only `https://` and this machine itself get them. Certificates are verified in any case.",
				Optional:            true,
			},
		}},
	}
}
