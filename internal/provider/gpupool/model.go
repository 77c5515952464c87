package gpupool

import (
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// defaultTimeout limits each operation on a GPU pool.
const defaultTimeout = 5 * time.Minute

// Model is trainyard_gpu_pool.
type Model struct {
	ID               types.String                 `tfsdk:"id"`
	Cluster          resourcekit.ClusterReference `tfsdk:"cluster"`
	Name             types.String                 `tfsdk:"name"`
	Devices          types.Map                    `tfsdk:"devices"`
	Select           *SelectorModel               `tfsdk:"select"`
	Sharing          types.String                 `tfsdk:"sharing"`
	MemoryMiBPerSlot *int64                       `tfsdk:"memory_mib_per_slot"`
	ReservePercent   types.Float64                `tfsdk:"reserve_percent"`
	Strategy         types.String                 `tfsdk:"strategy"`
	OnForeignProcess types.String                 `tfsdk:"on_foreign_process"`
	Slots            types.Int64                  `tfsdk:"slots"`
	DeviceSlots      types.Map                    `tfsdk:"device_slots"`
	Unhealthy        types.Map                    `tfsdk:"unhealthy"`
	Timeouts         timeouts.Value               `tfsdk:"timeouts"`
}

// SelectorModel is how the devices of a pool are selected.
type SelectorModel struct {
	Model      *string           `tfsdk:"model"`
	MemoryMiB  *int64            `tfsdk:"memory_mib"`
	Hosts      []string          `tfsdk:"hosts"`
	Labels     map[string]string `tfsdk:"labels"`
	MaxPerHost *int64            `tfsdk:"max_per_host"`
}

// InCluster returns the cluster that it belongs to.
func (m Model) InCluster() resourcekit.ClusterReference { return m.Cluster }

// Limits returns the configured timeouts.
func (m Model) Limits() timeouts.Value { return m.Timeouts }

// IdentityData returns the resource's identity.
func (m Model) IdentityData() any { return resourcekit.Identity{Cluster: m.Cluster.Name, Name: m.Name} }

// Title names the resource in errors.
func (m Model) Title() string { return fmt.Sprintf("GPU pool %q", m.Name.ValueString()) }

// DevicesType is the type of a host's list of UUIDs.
var DevicesType = types.ListType{ElemType: types.StringType}

// expand returns the pool that a configuration specifies, with defaults filled in so that it is
// stored as it is read back.
func (m Model) expand(diags *diag.Diagnostics) domain.GPUPool {
	pool := domain.GPUPool{Sharing: domain.Exclusive, Strategy: domain.Spread, OnForeignProcess: domain.ForeignAvoid}
	resourcekit.Expand(&pool, m, diags)
	return pool
}

// specified returns the pool that a plan or a state specifies, without the selected devices.
func (m Model) specified(diags *diag.Diagnostics) domain.GPUPool {
	pool := m.expand(diags)
	if pool.Select != nil {
		pool.Devices = nil
	}
	return pool
}

// shown returns the selected devices that a plan shows; nil if it shows none.
func (m Model) shown() map[string][]string {
	if m.Select == nil || m.Devices.IsUnknown() {
		return nil
	}
	return resourcekit.ListsIn(m.Devices)
}

// flatten returns a pool as stored, in the spelling and with the timeouts of prior.
func flatten(document domain.GPUPoolDocument, prior Model) Model {
	spec := document.Spec
	spec.Devices = nil // the devices found are shown instead
	m := resourcekit.Flatten(spec, prior)
	m.ID = types.StringValue(domain.GroupID(spec.Cluster, spec.Name))
	m.Devices, m.Slots, m.DeviceSlots = foundDevices(document)
	m.Unhealthy = resourcekit.StringMap(document.Unhealthy())
	return m
}

// unread returns a pool as planned that was stored but could not be read. What is unknown of it is left to a refresh.
func unread(plan Model) Model {
	plan.ID = types.StringValue(domain.GroupID(plan.Cluster.Name.ValueString(), plan.Name.ValueString()))
	if plan.Devices.IsUnknown() {
		plan.Devices = types.MapNull(DevicesType)
	}
	if plan.Slots.IsUnknown() {
		plan.Slots = types.Int64Null()
	}
	if plan.DeviceSlots.IsUnknown() {
		plan.DeviceSlots = types.MapNull(types.Int64Type)
	}
	if plan.Unhealthy.IsUnknown() {
		plan.Unhealthy = types.MapNull(types.StringType)
	}
	return plan
}

// foundDevices returns the attributes for the devices of a pool.
func foundDevices(document domain.GPUPoolDocument) (devices types.Map, slots types.Int64, deviceSlots types.Map) {
	byHost, byDevice := map[string]attr.Value{}, map[string]attr.Value{}
	for host, found := range document.Devices {
		var uuids []attr.Value
		for _, device := range found {
			uuids = append(uuids, types.StringValue(device.UUID))
			byDevice[device.UUID] = types.Int64Value(int64(document.Spec.SlotsOf(device)))
		}
		byHost[host] = types.ListValueMust(types.StringType, uuids)
	}
	return types.MapValueMust(DevicesType,
		byHost), types.Int64Value(int64(document.Slots())), types.MapValueMust(types.Int64Type, byDevice)
}
