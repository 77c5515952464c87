package sweep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// sweepResource is trainyard_sweep.
type sweepResource struct{ resourcekit.Entity[Model] }

var (
	_ resource.ResourceWithConfigure      = &sweepResource{}
	_ resource.ResourceWithValidateConfig = &sweepResource{}
	_ resource.ResourceWithModifyPlan     = &sweepResource{}
	_ resource.ResourceWithImportState    = &sweepResource{}
	_ resource.ResourceWithIdentity       = &sweepResource{}
)

func (r *sweepResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = Schema(ctx, r.Engines)
}

// tainted is added to the error of a creation after which the sweep exists.
const tainted = "The sweep exists, and is in the state. Terraform marks a resource whose creation failed as tainted, " +
	"and the next apply would replace the sweep with all of its runs: terraform untaint <address> keeps it."

// put applies a sweep as planned, and returns the state from a read after the write. Once it is stored it is in the
// state, whatever fails after that.
func (r *sweepResource) put(ctx context.Context, plan Model, w resourcekit.Write) (*Model, error) {
	defer r.Session.Plans.DropSweep(plan.address())
	spec := plan.expand(w.Diags)
	if w.Diags.HasError() {
		return nil, nil
	}
	reconciler, err := resourcekit.Reach(ctx, r.Session.Open, plan.Cluster, w.Private)
	if err != nil {
		return nil, err
	}
	failure := r.write(ctx, reconciler, spec, w)
	if _, locked := errors.AsType[*engine.LockedError](failure); locked {
		return nil, failure // another run may have created it
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), group.ReadTimeout)
	defer cancel()
	found, err := reconciler.Sweep(ctx, spec.Name)
	switch {
	case failure == nil && err != nil:
		plan.ID = types.StringValue(domain.GroupID(spec.Cluster, spec.Name))
		return &plan, fmt.Errorf("it was stored, but could not be read: %w", err)
	case failure != nil && (err != nil || !found.Spec.Equal(spec)):
		return nil, failure
	case failure == nil && !found.Spec.Equal(spec):
		plan.ID = types.StringValue(domain.GroupID(spec.Cluster, spec.Name))
		return &plan, fmt.Errorf("it was stored as planned, but %w: apply again to restore the configuration",
			engine.ErrConflict)
	case failure != nil && w.Created && !errors.Is(failure, context.DeadlineExceeded):
		failure = fmt.Errorf("%w\n\n%s", failure, tainted)
	}
	state := flatten(found.Spec, plan)
	return &state, failure
}

// write stores a sweep, and waits for its runs if asked to.
func (r *sweepResource) write(
	ctx context.Context, reconciler reconcile.Reconciler, spec domain.Sweep, w resourcekit.Write,
) error {
	adopted, err := reconciler.PutSweep(ctx, spec, w.Created)
	if err != nil {
		return err
	}
	if adopted {
		w.Diags.AddWarning("Sweep adopted", fmt.Sprintf(
			"Cluster %q already had a sweep %q with this specification. This resource manages it from now on.",
			spec.Cluster, spec.Name,
		))
	}
	if spec.WaitFor != domain.WaitEnded {
		return nil
	}
	err = reconciler.AwaitSweep(ctx, spec.Name)
	if failed, is := errors.AsType[*reconcile.UnsuccessfulError](err); is {
		// An error would taint a new sweep, and the next apply would repeat all of it because of a few failures.
		w.Diags.AddWarning("Runs did not succeed",
			failed.Error()+
				".\n\nThe data source trainyard_sweep has the state of each run, and trainyard_logs its output. "+
				`With rerun = "failed", a change of triggers starts only those again.`)
		return nil
	}
	return err
}

func (r *sweepResource) get(ctx context.Context, reconciler reconcile.Reconciler, prior Model) (Model, error) {
	found, err := reconciler.Sweep(ctx, prior.Name.ValueString())
	if err != nil && !errors.Is(err, reconcile.ErrRunsMissing) { // the plan adds missing runs
		return prior, err
	}
	lost, err := reconciler.LostResults(ctx, found)
	if err != nil {
		return prior, err
	}
	if found.Document.Ending { // a destroy was interrupted: none of its runs will start
		lost = found.Spec.Keys()
	}
	for _, key := range lost { // as if they did not exist: the plan adds them
		delete(found.Spec.Runs, key)
		delete(found.Spec.Config, key)
	}
	return flatten(found.Spec, prior), nil
}

func (r *sweepResource) remove(
	ctx context.Context, reconciler reconcile.Reconciler, state Model, diags *diag.Diagnostics,
) error {
	name := state.Name.ValueString()
	kept, err := reconciler.KeptResults(ctx, name)
	if err != nil {
		return err
	}
	var archive collected
	if state.Results != nil && state.Results.CollectTo != nil {
		archive = newCollected(state, time.Now())
	}
	err = reconciler.DeleteSweep(ctx, name, archive.by(reconciler))
	archive.announce(diags) // also if the destroy failed: the next one may find less
	if err != nil {
		return err
	}
	warnKept(name, kept, diags)
	r.Session.Plans.DropSweep(state.address())
	return nil
}

// keptShown is how many places of results are listed.
const keptShown = 10

// warnKept says where the results of a destroyed sweep are.
func warnKept(name string, places []string, diags *diag.Diagnostics) {
	if len(places) == 0 {
		return
	}
	detail := "The results of its runs are kept:\n\n- " + strings.Join(places[:min(len(places), keptShown)], "\n- ")
	if more := len(places) - keptShown; more > 0 {
		detail += fmt.Sprintf("\n- and %d more, named likewise", more)
	}
	diags.AddWarning(fmt.Sprintf("Results of sweep %q are kept", name),
		detail+"\n\nWith results.on_destroy = \"delete\", a destroy removes them.")
}

// ImportState takes <cluster>/<sweep> as ID, or its parts as identity.
func (r *sweepResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	resourcekit.Importable{
		Kind: "sweep", Form: "a sweep, which is <cluster>/<sweep>, such as lab/lr", Valid: resourcekit.PlainName,
	}.Into(ctx, r.Session, req, resp)
}

// NewResource returns trainyard_sweep for clusters of these engines.
func NewResource(engines []string) resource.Resource {
	r := &sweepResource{}
	r.Resource, r.Timeout, r.PutTimeout = resourcekit.NewResource("sweep", engines,
		resourcekit.IdentitySchema("sweep")), defaultTimeout, putTimeout
	r.Put, r.Get, r.Remove = r.put, r.get, r.remove
	return r
}
