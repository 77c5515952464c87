package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

type dockerModel struct {
	TLS             *tlsModel                `tfsdk:"tls"`
	Registries      map[string]registryModel `tfsdk:"registries"`
	ControllerImage *string                  `tfsdk:"controller_image"`
}

type tlsModel struct {
	CA       *string `tfsdk:"ca"`
	Cert     *string `tfsdk:"cert"`
	Key      *string `tfsdk:"key"`
	CertPath *string `tfsdk:"cert_path"`
}

type registryModel struct {
	Username *string `tfsdk:"username"`
	Password *string `tfsdk:"password"`
	Token    *string `tfsdk:"token"`
}

// expand returns the settings as configured; omitted values are zero.
func (m *dockerModel) expand() engine.DockerSettings {
	if m == nil {
		return engine.DockerSettings{}
	}
	tls := resourcekit.Value(m.TLS)
	return engine.DockerSettings{
		TLS: engine.TLSCredentials{
			CA: resourcekit.Value(tls.CA), Cert: resourcekit.Value(tls.Cert),
			Key: engine.Secret(resourcekit.Value(tls.Key)), CertPath: resourcekit.Value(tls.CertPath),
		},
		Registries: resourcekit.ConvertMap(m.Registries, func(r registryModel) engine.RegistryCredentials {
			return engine.RegistryCredentials{
				Username: resourcekit.Value(r.Username), Password: engine.Secret(resourcekit.Value(r.Password)),
				Token: engine.Secret(resourcekit.Value(r.Token)),
			}
		}),
		ControllerImage: resourcekit.Value(m.ControllerImage),
	}
}

// dockerAttribute is how Docker Engines are reached, and what they need to run members.
func dockerAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "What Docker Engines need besides `ssh`: certificates for those reached over TLS, and " +
			"image registry credentials, which are not stored in any state. " +
			"Omitted settings are taken from where the `docker` command finds them: `DOCKER_HOST`, " +
			"`DOCKER_CERT_PATH`, `DOCKER_CONTEXT` and `DOCKER_CONFIG`, and the current context.",
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"tls": tlsAttribute(),
			"registries": schema.MapNestedAttribute{
				MarkdownDescription: "Image registry credentials by host, such as `registry.example.com:5000` or " +
					"`docker.io`. Hosts that pull get those for the registries that they pull from. With " +
					"`systemd`, every host of the cluster keeps a copy of the credentials that its groups and sweeps " +
					"need, in files that only root can read. Defaults to those in Docker's `config.json`.",
				Optional:   true,
				Validators: []validator.Map{mapvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"username": schema.StringAttribute{
						MarkdownDescription: "User name. Requires `password`.",
						Optional:            true,
						Validators: []validator.String{
							stringvalidator.AlsoRequires(resourcekit.Beside("password")),
						},
					},
					"password": schema.StringAttribute{
						MarkdownDescription: "Password or access token. Requires `username`.",
						Optional:            true,
						Sensitive:           true,
						Validators: []validator.String{
							stringvalidator.AlsoRequires(resourcekit.Beside("username")),
							stringvalidator.ExactlyOneOf(resourcekit.Beside("token")),
						},
					},
					"token": schema.StringAttribute{
						MarkdownDescription: "Identity token, instead of `username` and `password`.",
						Optional:            true,
						Sensitive:           true,
					},
				}},
			},
			"controller_image": schema.StringAttribute{
				MarkdownDescription: "Image for the clusters' controllers and the agents on their hosts. Its " +
					"entrypoint must be the `trainyard-agent` of this version, and all hosts must be able to pull " +
					"it. Defaults to none: the provider loads an image of itself onto the hosts that it reaches. " +
					"Required to start controllers if Terraform runs on macOS or Windows. An apply pins a tag to its " +
					"digest. See the guide \"The swarm engine\".",
				Optional:   true,
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}

func tlsAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Mutual TLS authentication between the provider and hosts with a `tcp://` address. " +
			"These connections are always encrypted and verified.",
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"ca": schema.StringAttribute{
				MarkdownDescription: "CA certificates that the hosts' certificates must be signed by, as PEM text. " +
					"Defaults to those that the system trusts.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.ConflictsWith(resourcekit.Beside("cert_path"))},
			},
			"cert": schema.StringAttribute{
				MarkdownDescription: "Client certificate of the provider, as PEM text. Requires `key`.",
				Optional:            true,
				Validators: []validator.String{
					stringvalidator.ConflictsWith(resourcekit.Beside("cert_path")),
					stringvalidator.AlsoRequires(resourcekit.Beside("key")),
				},
			},
			"key": schema.StringAttribute{
				MarkdownDescription: "Private key of `cert`, as PEM text. Requires `cert`.",
				Optional:            true,
				Sensitive:           true,
				Validators: []validator.String{
					stringvalidator.ConflictsWith(resourcekit.Beside("cert_path")),
					stringvalidator.AlsoRequires(resourcekit.Beside("cert")),
				},
			},
			"cert_path": schema.StringAttribute{
				MarkdownDescription: "Folder with `ca.pem`, `cert.pem` and `key.pem`, instead of the PEM texts; `~/` " +
					"is the home directory. Defaults to the environment variable `DOCKER_CERT_PATH`.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}
