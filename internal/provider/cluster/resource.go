package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// defaultTimeout limits each operation on a cluster: hosts join or leave, and the controller is started or stopped.
const defaultTimeout = 10 * time.Minute

// clusterResource is trainyard_cluster.
type clusterResource struct{ resourcekit.Resource }

var (
	_ resource.ResourceWithConfigure      = &clusterResource{}
	_ resource.ResourceWithValidateConfig = &clusterResource{}
	_ resource.ResourceWithModifyPlan     = &clusterResource{}
	_ resource.ResourceWithImportState    = &clusterResource{}
	_ resource.ResourceWithIdentity       = &clusterResource{}
)

func (r *clusterResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = Schema(ctx, r.Engines)
}

// ValidateConfig checks a cluster as far as possible without its hosts and with unknown values.
func (r *clusterResource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	resourcekit.ValidateKnown(ctx, req.Config, &resp.Diagnostics,
		func(cluster Model, malformed *diag.Diagnostics) domain.Problems {
			return cluster.completed(malformed).Validate()
		})
}

// ModifyPlan fills in what the configuration leaves to the engine, and stores the planned cluster for
// the plans of its groups.
func (r *clusterResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	if req.Plan.Raw.IsNull() || r.Session == nil ||
		!resourcekit.SettledAttributes(req.Plan.Raw, "id", "endpoint", "hosts", "network", "agent", "timeouts") {
		return
	}
	if !resourcekit.SettledAttributes(req.Config.Raw, "id", "timeouts") {
		// Its hosts or agents are unknown yet, but it is known that this cluster will change.
		var name, engineName types.String
		resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("name"), &name)...)
		resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("engine"), &engineName)...)
		key := resourcekit.KeyOf(name, engineName, types.StringNull())
		r.Session.Plans.PutCluster(resourcekit.IDOf(key), resourcekit.PlannedCluster{})
		r.checkResidents(key, &resp.Diagnostics)
		return
	}
	var config Model
	if resp.Diagnostics.Append(req.Config.Get(ctx, &config)...); resp.Diagnostics.HasError() {
		return
	}
	cluster := config.expand(&resp.Diagnostics)
	if addresses := managers(cluster.Hosts); cluster.Endpoint == "" && len(addresses) > 0 {
		cluster.Endpoint = addresses[0]
	}
	if other, taken := r.Session.Plans.ClaimCluster(cluster); taken {
		resp.Diagnostics.AddAttributeError(path.Root("name"), "Cluster name used twice", fmt.Sprintf(
			"Another cluster %q of engine %q is reached at %s. Within one provider configuration, engine and name "+
				"identify a cluster, wherever it is reached. Choose another name, or use another provider "+
				"configuration: a provider block with an alias, which a module gets as providers = { trainyard = "+
				"trainyard.<alias> }.",
			cluster.Name, cluster.Engine, cmp.Or(other.Endpoint, "the default endpoint")))
		return
	}
	stored := r.stored(ctx, req.State, cluster, &resp.Diagnostics)
	cluster.Network = config.Network.over(stored.Network)
	var known resourcekit.PrivateState
	if stored.Name != "" {
		known = req.Private
	}
	at := cluster.Ref()
	at.Endpoint = cmp.Or(at.Endpoint, stored.Endpoint) // as the refresh reached it
	cluster, ok := r.complete(ctx, at, cluster, known, &resp.Diagnostics)
	if !ok {
		return
	}
	if stored.Name != "" {
		r.Session.WarnOfResidents(ctx, at,
			resourcekit.ResidentWarning{Concerning: domain.Residents.Missing, Summary: resourcekit.NotRunning(at.Name)},
			&resp.Diagnostics)
	}
	keepMemory(cluster.Hosts, stored.Hosts, config.Hosts)
	r.Session.Plans.PutCluster(resourcekit.IDOf(cluster.Ref()),
		resourcekit.PlannedCluster{Spec: cluster, Settled: true})
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("endpoint"),
		resourcekit.TextOrNull(cluster.Endpoint))...)
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("hosts"),
		resourcekit.Flatten(cluster, config).Hosts)...)
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("network"),
		flattenNetwork(cluster.Network, types.StringUnknown()))...)
	if !resp.Plan.Raw.Equal(req.State.Raw) {
		r.checkResidents(at, &resp.Diagnostics)
	}
}

// checkResidents reports why the controller or agents of a cluster could not be started.
func (r *clusterResource) checkResidents(at domain.ClusterRef, diags *diag.Diagnostics) {
	reconciler, err := r.Session.Plan(at)
	if err != nil {
		resourcekit.AddError(diags, "Unable to plan the cluster", err)
		return
	}
	resourcekit.AddProblems(diags, reconciler.Engine.Traits().CheckResidents(domain.Path{"engine"}))
}

// stored returns the cluster in the state; empty if there is none, or if it is not the planned one.
func (r *clusterResource) stored(
	ctx context.Context, state tfsdk.State, planned domain.Cluster, diags *diag.Diagnostics,
) domain.Cluster {
	if state.Raw.IsNull() {
		return domain.Cluster{}
	}
	var model Model
	diags.Append(state.Get(ctx, &model)...)
	stored := model.expand(diags)
	if resourcekit.IDOf(stored.Ref()) != resourcekit.IDOf(planned.Ref()) {
		return domain.Cluster{}
	}
	return stored
}

// complete lets the engine fill in the cluster, and checks the result. The private state says which
// cluster an existing one is.
func (r *clusterResource) complete(
	ctx context.Context, at domain.ClusterRef, cluster domain.Cluster, known resourcekit.PrivateState,
	diags *diag.Diagnostics,
) (domain.Cluster, bool) {
	r.Session.Know(cluster)
	reconciler, err := r.Session.Plan(at)
	if err != nil {
		resourcekit.AddError(diags, "Unable to plan the cluster", err)
		return domain.Cluster{}, false
	}
	if known != nil {
		var astray *engine.ElsewhereError
		if err := resourcekit.Recognise(ctx, reconciler.Engine, known); errors.As(err, &astray) {
			resourcekit.AddError(diags, "Unable to plan the cluster", err)
			return domain.Cluster{}, false
		}
	}
	problems := reconciler.Engine.Traits().CheckCluster(cluster)
	if problems.Err() != nil {
		resourcekit.AddProblems(diags, problems)
		return domain.Cluster{}, false
	}
	cluster, problems, err = reconciler.Engine.Complete(ctx, cluster)
	if err != nil {
		resourcekit.AddError(diags, "Unable to inspect the hosts", err)
		return domain.Cluster{}, false
	}
	if problems.Err() == nil {
		problems = append(problems, cluster.Validate()...)
	}
	resourcekit.AddProblems(diags, problems)
	return cluster, problems.Err() == nil
}

func (r *clusterResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan Model
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := plan.Timeouts.Create(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	spec := plan.expand(&resp.Diagnostics)

	to := record{&resp.State, resp.Identity, resp.Private}
	r.put(ctx, timeout, plan, to, &resp.Diagnostics, func(
		ctx context.Context, eng engine.Engine,
	) (domain.ClusterDocument, bool) {
		existing, err := engine.Cluster(ctx, eng)
		switch {
		case errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrNotFormed):
			return domain.ClusterDocument{}, true
		case err != nil:
			resourcekit.AddError(&resp.Diagnostics, fmt.Sprintf("Unable to create cluster %q", spec.Name), err)
			return domain.ClusterDocument{}, false
		case !sameCluster(existing.Spec, spec):
			resp.Diagnostics.AddAttributeError(path.Root("name"), "Cluster already exists",
				fmt.Sprintf("A cluster %q with other hosts already exists. Choose another name, or import it: "+
					"terraform import <address> %s", spec.Name, eng.Traits().ImportFrom+spec.Name))
			return domain.ClusterDocument{}, false
		}
		resp.Diagnostics.AddWarning("Cluster adopted",
			fmt.Sprintf("There already was a cluster %q with the same specification. This resource manages it "+
				"from now on.",
				spec.Name))
		return existing, true
	})
	r.Own(ctx, plan.key(), resourcekit.CreationOf(req, resp))
}

func (r *clusterResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan Model
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := plan.Timeouts.Update(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)

	to := record{&resp.State, resp.Identity, resp.Private}
	r.put(ctx, timeout, plan, to, &resp.Diagnostics,
		func(ctx context.Context, eng engine.Engine) (domain.ClusterDocument, bool) {
			err := resourcekit.Recognise(ctx, eng, req.Private)
			var existing domain.ClusterDocument
			if err == nil {
				existing, err = engine.Cluster(ctx, eng)
			}
			if err != nil {
				resourcekit.AddError(&resp.Diagnostics,
					fmt.Sprintf("Unable to update cluster %q", plan.Name.ValueString()), err)
			}
			return existing, err == nil
		})
	r.Own(ctx, plan.key(), resourcekit.UpdateOf(req, resp))
}

// put changes the hosts to the planned cluster, stores it based on the document that base returns, and starts its
// controller. The state comes from a read after the write.
func (r *clusterResource) put(ctx context.Context, timeout time.Duration, plan Model, to record,
	diags *diag.Diagnostics, base func(context.Context, engine.Engine) (domain.ClusterDocument, bool)) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	spec := plan.expand(diags)
	defer r.Session.Plans.DropCluster(resourcekit.IDOf(spec.Ref()))

	r.Session.Know(spec)
	reconciler, err := r.Session.Open(spec.Ref())
	if err != nil {
		resourcekit.AddError(diags, fmt.Sprintf("Unable to open cluster %q", spec.Name), err)
		return
	}
	document, ok := base(ctx, reconciler.Engine)
	if !ok {
		return
	}
	keepKnown(spec.Hosts, document.Spec.Hosts)
	if document.Spec, err = reconciler.Engine.Form(ctx, spec); err != nil {
		resourcekit.AddError(diags, fmt.Sprintf("Unable to form cluster %q", spec.Name), err)
		return
	}
	if document, err = engine.Put(ctx, reconciler.Engine, document); err != nil {
		resourcekit.AddError(diags, fmt.Sprintf("Unable to store cluster %q", spec.Name), err)
		return
	}
	// From here on the cluster exists and is in the state, whatever fails next.
	to.set(ctx, plan, document.Spec, diags)
	found, err := survey(ctx, reconciler.Engine)
	if err != nil {
		resourcekit.AddError(diags, fmt.Sprintf("Unable to read cluster %q after it was stored", spec.Name), err)
		return
	}
	to.set(ctx, plan, found, diags)
	if err := reconciler.Engine.StartController(ctx); err != nil {
		resourcekit.AddError(diags, fmt.Sprintf("Unable to start the controller of cluster %q", spec.Name), err)
		return
	}
	residents, err := reconciler.AwaitResidents(ctx)
	if err != nil {
		resourcekit.AddError(diags, resourcekit.NotRunning(spec.Name), fmt.Errorf("%w\n\n%s", err, residentsFailed))
		return
	}
	for _, missing := range residents.Missing() {
		diags.AddWarning(resourcekit.NotRunning(spec.Name), missing)
	}
}

// residentsFailed is added to the error of an apply after which the controller or agents don't run.
const residentsFailed = "What runs keeps running, and the cluster is in the state; its engine keeps trying. " +
	"A cluster that was just created is tainted: run terraform untaint first, or the next apply replaces it."

// survey returns the stored cluster as found on the hosts, or [engine.ErrNotFound] if none is stored.
func survey(ctx context.Context, eng engine.Engine) (domain.Cluster, error) {
	document, err := engine.Cluster(ctx, eng)
	if err != nil {
		return domain.Cluster{}, err
	}
	found, err := eng.Survey(ctx, document.Spec)
	if errors.Is(err, engine.ErrNotFound) {
		// This must not be taken for a missing cluster.
		return domain.Cluster{},
			errors.New("the cluster is stored, but its hosts could not be inspected: " + err.Error())
	}
	return found, err
}

// record is where Terraform keeps a cluster.
type record struct {
	state    *tfsdk.State
	identity *tfsdk.ResourceIdentity
	private  resourcekit.PrivateState
}

// set stores a cluster, in the spelling of prior.
func (to record) set(ctx context.Context, prior Model, cluster domain.Cluster, diags *diag.Diagnostics) {
	model := resourcekit.Flatten(cluster, prior)
	model.ID, model.Network = model.Name, flattenNetwork(cluster.Network, types.StringNull())
	diags.Append(to.state.Set(ctx, model)...)
	diags.Append(to.identity.Set(ctx, identity{Name: model.Name})...)
	if err := resourcekit.Remember(ctx, to.private, cluster.ID); err != nil {
		resourcekit.AddError(diags, "Unable to store the cluster's ID", err)
	}
}

func (r *clusterResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var prior Model
	if resp.Diagnostics.Append(req.State.Get(ctx, &prior)...); resp.Diagnostics.HasError() {
		return
	}
	r.Session.Know(prior.expand(&resp.Diagnostics))
	reconciler, err := r.Session.Plan(prior.key())
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, "Unable to read the cluster", err)
		return
	}
	err = resourcekit.Recognise(ctx, reconciler.Engine, req.Private)
	var cluster domain.Cluster
	if err == nil {
		cluster, err = survey(ctx, reconciler.Engine)
	}
	switch {
	case errors.Is(err, engine.ErrNotFound):
		resp.State.RemoveResource(ctx)
		// The framework requires an identity even for a resource that is gone, and Terraform before 1.12 keeps none.
		resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{Name: prior.Name})...)
	case err != nil:
		resourcekit.AddError(&resp.Diagnostics, fmt.Sprintf("Unable to read cluster %q", prior.Name.ValueString()), err)
	default:
		record{&resp.State, resp.Identity, resp.Private}.set(ctx, prior, cluster, &resp.Diagnostics)
		if err := r.RememberOwner(ctx, reconciler.Engine, resp.State, resp.Private); err != nil {
			resourcekit.AddError(&resp.Diagnostics, "Unable to read the cluster", err)
		}
	}
}

func (r *clusterResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := state.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	summary := fmt.Sprintf("Unable to delete cluster %q", state.Name.ValueString())
	r.Session.Know(state.expand(&resp.Diagnostics))
	reconciler, err := r.Session.Open(state.key())
	if err == nil {
		err = resourcekit.Recognise(ctx, reconciler.Engine, req.Private)
	}
	if err == nil {
		err = r.IfOwned(ctx, reconciler.Engine, req.State, req.Private, &resp.Diagnostics,
			func() error { return dissolve(ctx, reconciler.Engine, state.Name.ValueString(), &resp.Diagnostics) })
	}
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, summary, err)
		return
	}
	r.Session.Plans.DropCluster(resourcekit.IDOf(state.key()))
}

// dissolve dissolves a cluster unless it is in use.
func dissolve(ctx context.Context, eng engine.Engine, name string, diags *diag.Diagnostics) error {
	groups, err := engine.List[domain.GroupDocument](ctx, eng)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	sweeps, err := engine.List[domain.SweepDocument](ctx, eng)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	if len(groups)+len(sweeps) > 0 {
		diags.AddError("Cluster in use",
			fmt.Sprintf("Cluster %q still has %s. Destroy them first. Those that Terraform has lost track of can be "+
				"imported and then destroyed: terraform import <address> %s",
				name, domain.EnumerateUsers(slices.Collect(maps.Keys(groups)), slices.Collect(maps.Keys(sweeps))),
				eng.Traits().ImportFrom+domain.GroupID(name, "<name>")))
		return nil
	}
	return eng.Dissolve(ctx)
}

// ImportState takes the cluster's name as ID, with or without an address before it, or as identity. The engine is the
// one that has a document of the cluster.
func (r *clusterResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	endpoint, name := resourcekit.CutEndpoint(req.ID, 1)
	if req.ID == "" && req.Identity != nil {
		var identity identity
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
		name = identity.Name.ValueString()
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if name == "" {
		resp.Diagnostics.AddError("Invalid import ID", fmt.Sprintf("%q is not the ID of a cluster, which is its "+
			"name, such as lab, preceded by the address of a host if necessary: ssh://ops@gpu1/lab.", req.ID))
		return
	}
	key, err := r.Session.Find(ctx, endpoint, name)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, "Unable to import the cluster", err)
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), key.Name)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("engine"), key.Engine)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("endpoint"),
		resourcekit.TextOrNull(key.Endpoint))...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{Name: types.StringValue(key.Name)})...)
}

func identitySchema() identityschema.Schema {
	return identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"name": identityschema.StringAttribute{Description: "Name of the cluster.", RequiredForImport: true},
		},
	}
}

// NewResource returns trainyard_cluster for clusters of these engines.
func NewResource(engines []string) resource.Resource {
	return &clusterResource{resourcekit.NewResource("cluster", engines, identitySchema())}
}
