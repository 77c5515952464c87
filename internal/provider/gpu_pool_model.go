package provider

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// defaultGPUPoolTimeout bounds each operation on a GPU pool.
const defaultGPUPoolTimeout = 5 * time.Minute

// gpuPoolModel is trainyard_gpu_pool.
type gpuPoolModel struct {
	ID               types.String     `tfsdk:"id"`
	Cluster          clusterReference `tfsdk:"cluster"`
	Name             types.String     `tfsdk:"name"`
	Devices          types.Map        `tfsdk:"devices"`
	Select           *selectorModel   `tfsdk:"select"`
	Sharing          types.String     `tfsdk:"sharing"`
	MemoryMiBPerSlot *int64           `tfsdk:"memory_mib_per_slot"`
	ReservePercent   types.Float64    `tfsdk:"reserve_percent"`
	Strategy         types.String     `tfsdk:"strategy"`
	OnForeignProcess types.String     `tfsdk:"on_foreign_process"`
	Slots            types.Int64      `tfsdk:"slots"`
	DeviceSlots      types.Map        `tfsdk:"device_slots"`
	Unhealthy        types.Map        `tfsdk:"unhealthy"`
	Timeouts         timeouts.Value   `tfsdk:"timeouts"`
}

type selectorModel struct {
	Model      *string           `tfsdk:"model"`
	MemoryMiB  *int64            `tfsdk:"memory_mib"`
	Hosts      []string          `tfsdk:"hosts"`
	Labels     map[string]string `tfsdk:"labels"`
	MaxPerHost *int64            `tfsdk:"max_per_host"`
}

func (m gpuPoolModel) identity() identity { return identity{m.Cluster.Name, m.Name} }

// devicesType is the type of lists of UUIDs.
var devicesType = types.ListType{ElemType: types.StringType}

// expand returns the pool that a configuration specifies. Defaults are filled in, so that it is stored as it is read back.
func (m gpuPoolModel) expand(diags *diag.Diagnostics) domain.GPUPool {
	pool := domain.GPUPool{Sharing: domain.Exclusive, Strategy: domain.Spread, OnForeignProcess: domain.ForeignAvoid}
	expandInto(&pool, m, diags)
	return pool
}

// specified returns the pool that a plan or a state specifies: the devices that were chosen are no part of that.
func (m gpuPoolModel) specified(diags *diag.Diagnostics) domain.GPUPool {
	pool := m.expand(diags)
	if pool.Select != nil {
		pool.Devices = nil
	}
	return pool
}

// shown returns the devices that a plan shows as chosen; nil where it does not.
func (m gpuPoolModel) shown() map[string][]string {
	if m.Select == nil || m.Devices.IsUnknown() {
		return nil
	}
	return listsIn(m.Devices)
}

// flattenGPUPool returns a pool as it is stored, in the spelling of prior; timeouts are prior's.
func flattenGPUPool(document domain.GPUPoolDocument, prior gpuPoolModel) gpuPoolModel {
	spec := document.Spec
	spec.Devices = nil // those that were found are shown
	m := flatten(spec, prior)
	m.ID = types.StringValue(domain.GroupID(spec.Cluster, spec.Name))
	m.Devices, m.Slots, m.DeviceSlots = foundDevices(document)
	m.Unhealthy = stringMap(document.Unhealthy())
	return m
}

// foundDevices returns what a pool shows of its devices.
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
	return types.MapValueMust(devicesType, byHost), types.Int64Value(int64(document.Slots())), types.MapValueMust(types.Int64Type, byDevice)
}

// listsIn returns the elements of a map of lists of strings; nil where it is null or unknown.
func listsIn(m types.Map) map[string][]string {
	if m.IsNull() || m.IsUnknown() {
		return nil
	}
	lists := map[string][]string{}
	for key, element := range m.Elements() {
		list := []string{}
		if found, ok := element.(types.List); ok {
			for _, item := range found.Elements() {
				if text, ok := item.(types.String); ok {
					list = append(list, text.ValueString())
				}
			}
		}
		lists[key] = list
	}
	return lists
}
