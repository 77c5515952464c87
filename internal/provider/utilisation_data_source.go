package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// defaultWindow is the window of time over which utilisation is told where none is given.
const defaultWindow = "1m"

// utilisationDataSource is trainyard_utilisation.
type utilisationDataSource struct {
	engines []string
	session *session
}

var _ datasource.DataSourceWithConfigure = &utilisationDataSource{}

func (d *utilisationDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_utilisation"
}

func (d *utilisationDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = utilisationSchema(d.engines)
}

func (d *utilisationDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func (d *utilisationDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model utilisationModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &model)...); resp.Diagnostics.HasError() {
		return
	}
	key := model.Cluster.key()
	reconciler, err := d.session.open(key)
	if err != nil {
		addError(&resp.Diagnostics, "Unable to read the utilisation", err)
		return
	}
	window, err := time.ParseDuration(stringOr(model.Window, defaultWindow))
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("window"), invalidDuration, err.Error())
		return
	}
	usage, err := reconciler.Engine.Usage(ctx, window)
	if err != nil {
		addReadError(&resp.Diagnostics, path.Root("cluster"), fmt.Sprintf("utilisation of cluster %q", key.Name), err)
		return
	}
	model.flatten(usage.Only(model.Filter.expand()), time.Now())
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}
