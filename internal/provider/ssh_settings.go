package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

type sshModel struct {
	User            *string  `tfsdk:"user"`
	PrivateKey      *string  `tfsdk:"private_key"`
	IdentityFiles   []string `tfsdk:"identity_files"`
	Passphrase      *string  `tfsdk:"passphrase"`
	UseAgent        *bool    `tfsdk:"use_agent"`
	KnownHostsFiles []string `tfsdk:"known_hosts_files"`
	KnownHosts      *string  `tfsdk:"known_hosts"`
	JumpHost        *string  `tfsdk:"jump_host"`
}

// expand returns the credentials as configured; omitted values are zero.
func (m *sshModel) expand() engine.SSHCredentials {
	if m == nil {
		return engine.SSHCredentials{}
	}
	return engine.SSHCredentials{
		User:           resourcekit.Value(m.User),
		PrivateKey:     engine.Secret(resourcekit.Value(m.PrivateKey)),
		IdentityFiles:  m.IdentityFiles,
		Passphrase:     engine.Secret(resourcekit.Value(m.Passphrase)),
		Agent:          resourcekit.Value(m.UseAgent),
		KnownHosts:     m.KnownHostsFiles,
		KnownHostsText: resourcekit.Value(m.KnownHosts),
		JumpHost:       resourcekit.Value(m.JumpHost),
	}
}

func sshAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "How to log in to hosts with an `ssh://` address, and to the jump host, on any engine. " +
			"Credentials are not stored in any state. Host keys are always verified. `~/.ssh/config` is not read.",
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"user": schema.StringAttribute{
				MarkdownDescription: "User name if the address has none. Defaults to the user that runs Terraform.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"private_key": schema.StringAttribute{
				MarkdownDescription: "Private key, as PEM text. If no key is given, those of the agent " +
					"(`SSH_AUTH_SOCK`, or else the service `ssh-agent` on Windows) and `~/.ssh/id_ed25519`, " +
					"`id_ecdsa` and `id_rsa` are tried.",
				Optional:   true,
				Sensitive:  true,
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"identity_files": schema.ListAttribute{
				MarkdownDescription: "Private key files, offered in this order; `~/` is the home directory. Each " +
					"must be readable.",
				ElementType: types.StringType,
				Optional:    true,
				Validators: []validator.List{
					listvalidator.SizeAtLeast(1), listvalidator.NoNullValues(),
					listvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1)),
				},
			},
			"passphrase": schema.StringAttribute{
				MarkdownDescription: "Passphrase of encrypted keys.",
				Optional:            true,
				Sensitive:           true,
			},
			"use_agent": schema.BoolAttribute{
				MarkdownDescription: "Whether the agent's keys are offered in addition to those given; an agent must " +
					"then be running. Defaults to `false`: an agent is used only if no key is given.",
				Optional: true,
			},
			"known_hosts_files": schema.ListAttribute{
				MarkdownDescription: "Known hosts files. Defaults to `~/.ssh/known_hosts` and " +
					"`/etc/ssh/ssh_known_hosts`, unless `known_hosts` is set.",
				ElementType: types.StringType,
				Optional:    true,
				Validators:  []validator.List{listvalidator.NoNullValues()},
			},
			"known_hosts": schema.StringAttribute{
				MarkdownDescription: "Host keys, as lines of a known hosts file.",
				Optional:            true,
			},
			"jump_host": schema.StringAttribute{
				MarkdownDescription: "Host through which all others are reached, as `[user@]host[:port]`. " +
					"Defaults to none.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}
