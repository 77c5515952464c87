package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// remembering returns an engine with a history.
func remembering(t *testing.T, now time.Time, entries ...autoscale.Entry) *providertest.Stub {
	t.Helper()
	archive, err := autoscale.OpenArchive(nil, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		archive.Add(e)
	}
	put, _, err := archive.Pack(now)
	if err != nil {
		t.Fatal(err)
	}
	stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
	for _, chunk := range put {
		stub.Set(engine.Item{
			Key: engine.Key{Kind: autoscale.HistoryKind, Name: chunk.Name}, Revision: 1, Data: chunk.Data,
		})
	}
	return stub
}

// readHistory reads the data source with these attributes.
func readHistory(t *testing.T, stub *providertest.Stub, set map[string]tftypes.Value) (Model, diag.Diagnostics) {
	t.Helper()
	d := &scalingHistoryDataSource{resourcekit.NewDataSource("scaling_history", nil)}
	d.Session = resourcekit.NewSession(stub.Registry(), engine.Settings{})
	schema := Schema(nil)
	typ, ok := schema.Type().TerraformType(t.Context()).(tftypes.Object)
	if !ok {
		t.Fatal("the configuration is no object")
	}
	config := map[string]tftypes.Value{}
	for name, attribute := range typ.AttributeTypes {
		config[name] = tftypes.NewValue(attribute, nil)
	}
	config["cluster"] = tftypes.NewValue(typ.AttributeTypes["cluster"], map[string]tftypes.Value{
		"name": providertest.Text("lab"), "engine": tftypes.NewValue(tftypes.String, nil),
		"endpoint": tftypes.NewValue(tftypes.String, nil), "id": providertest.Text("lab"),
	})
	maps.Copy(config, set)
	resp := datasource.ReadResponse{State: tfsdk.State{Schema: schema, Raw: tftypes.NewValue(typ, nil)}}
	d.Read(t.Context(),
		datasource.ReadRequest{Config: tfsdk.Config{Schema: schema, Raw: tftypes.NewValue(typ, config)}}, &resp)
	var model Model
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Get(t.Context(), &model)...)
	}
	return model, resp.Diagnostics
}

func TestScalingHistory(t *testing.T) {
	start := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	step := func(policy string, minutes, from, to int) autoscale.Entry {
		return autoscale.NewEntry(policy, start.Add(time.Duration(minutes)*time.Minute), from,
			autoscale.Decision{From: from, To: to})
	}
	full := step("job/worker", 50, 4, 8)
	full.Ready, full.Outcome, full.OutcomeWhy, full.Changed = 3, autoscale.OutcomeHeld, "an apply holds the group",
		[]string{"9 is above max (8)"}
	full.Metrics = []autoscale.EntryMetric{
		{Name: "cpu", Value: new(92.5), Count: new(9), Why: "92.5 of 60"}, {Name: "jobs", Age: 75, Why: "stale"},
		{Name: "night", Count: new(0), Why: "0 until 6"},
	}
	full.Vertical = []autoscale.EntryVertical{
		{Name: "cpus", Requested: new(1.0), Target: new(2.5), Lower: new(0.5), Upper: new(3.0), Why: "used"},
		{Name: "memory_mib", Why: "not measured yet"},
	}
	full.Guards = []autoscale.EntryGuard{
		{Name: "busy.http", Value: new(0.0)}, {Name: "at_least", Why: "HTTP 404", Never: true},
	}
	lab := remembering(t, start,
		step("job/ps", 0, 1, 2), step("job/worker", 10, 3, 4), step("job/worker", 20, 4, 4),
		step("job/worker", 21, 4, 4), step("other/worker", 30, 1, 1), full)
	for _, policy := range []string{"job/worker", "job/ps"} {
		providertest.Set(lab, domain.SilentGuardsDocument{
			Policy: policy, Guards: []domain.SilentGuard{{Name: "at_least", Since: start, Why: "HTTP 404"}},
		})
	}
	_, diags := readHistory(t, lab,
		map[string]tftypes.Value{"role": providertest.Text("worker"), "group": providertest.Text("job")})
	if len(diags) != 1 ||
		!strings.Contains(diags[0].Detail(),
			"guard at_least of the autoscaling policy job/worker: queried since "+start.Format(
				time.RFC3339,
			)+", it has never had a value, so no members are removed: HTTP 404") {
		t.Errorf("it warns of %v", diags)
	}
	providertest.Drop[domain.SilentGuardsDocument](lab)
	all, diags := readHistory(t, lab, nil)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	moment := func(minutes int) timetypes.RFC3339 {
		return timetypes.NewRFC3339TimeValue(start.Add(time.Duration(minutes) * time.Minute))
	}
	want := []entryModel{
		{
			Group: "job", Role: "worker", At: moment(20), Until: moment(21), Decisions: 2, From: 4, To: 4, Ready: 4,
			Metrics: []entryMetricModel{}, Guards: []entryGuardModel{}, Vertical: []entryVerticalModel{},
			Limits: []string{},
			Why:    "no other count requested", Outcome: "unchanged",
		},
		{
			Group: "job", Role: "worker", At: moment(50), Until: moment(50), Decisions: 1, From: 4, To: 8, Ready: 3,
			Metrics: []entryMetricModel{
				{
					Name: "cpu", Value: types.Float64Value(92.5), AgeSeconds: types.Float64Value(0),
					Count: new(int64(9)), Why: "92.5 of 60",
				}, {Name: "jobs", AgeSeconds: types.Float64Value(75), Why: "stale"},
				{Name: "night", Count: new(int64(0)), Why: "0 until 6"},
			},
			Guards: []entryGuardModel{
				{Name: "busy.http", Value: types.Float64Value(0)},
				{Name: "at_least", Why: new("HTTP 404"), Never: true},
			},
			Vertical: []entryVerticalModel{
				{
					"cpus", types.Float64Value(1), types.Float64Value(2.5), types.Float64Value(0.5),
					types.Float64Value(3), "used",
				},
				{
					"memory_mib", types.Float64Null(), types.Float64Null(), types.Float64Null(), types.Float64Null(),
					"not measured yet",
				},
			},
			Limits: []string{"9 is above max (8)"},
			Why:    "cpu: 92.5 of 60; jobs: stale; night: 0 until 6; 9 is above max (8)", Outcome: "held",
			OutcomeWhy: new("an apply holds the group"),
		},
	}
	if diff := cmp.Diff(want, []entryModel{all.Entries[2], all.Entries[4]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	lines := strings.Split(strings.TrimSpace(*all.JSONLines), "\n")
	var last map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != 5 ||
		last["why"] != all.Entries[4].Why || last["to"] != 8.0 {
		t.Errorf("the last of %d lines is %v (%v)", len(lines), last, err)
	}

	whole, yes := func(n int) tftypes.Value {
		return tftypes.NewValue(tftypes.Number, n)
	}, tftypes.NewValue(tftypes.Bool, true)
	for name, test := range map[string]struct {
		set  map[string]tftypes.Value
		want string
	}{
		"all":        {nil, "job/ps 1→2, job/worker 3→4, job/worker 4→4, other/worker 1→1, job/worker 4→8"},
		"of a group": {map[string]tftypes.Value{"group": providertest.Text("other")}, "other/worker 1→1"},
		"of a role":  {map[string]tftypes.Value{"role": providertest.Text("ps")}, "job/ps 1→2"},
		"of nobody":  {map[string]tftypes.Value{"role": providertest.Text("chief")}, ""},
		"changes": {
			map[string]tftypes.Value{"only_changes": yes, "role": providertest.Text("worker")},
			"job/worker 3→4, job/worker 4→8",
		},
		"the newest": {map[string]tftypes.Value{"limit": whole(2)}, "other/worker 1→1, job/worker 4→8"},
		"all by its number": {
			map[string]tftypes.Value{"limit": whole(0), "group": providertest.Text("job")},
			"job/ps 1→2, job/worker 3→4, job/worker 4→4, job/worker 4→8",
		},
		"of the last time": {
			map[string]tftypes.Value{"since": providertest.Text("35m")}, "other/worker 1→1, job/worker 4→8",
		},
		"since a time": {
			map[string]tftypes.Value{"since": providertest.Text(start.Add(50 * time.Minute).Format(time.RFC3339))},
			"job/worker 4→8",
		},
	} {
		model, diags := readHistory(t, lab, test.set)
		var got []string
		for _, e := range model.Entries {
			got = append(got, fmt.Sprintf("%s/%s %d→%d", e.Group, e.Role, e.From, e.To))
		}
		if diags.HasError() || strings.Join(got, ", ") != test.want ||
			strings.Count(*model.JSONLines, "\n") != len(got) {
			t.Errorf("%s: %v %v, want %s; and %q", name, diags, got, test.want, *model.JSONLines)
		}
	}
}

// Without a limit, the newest hundred entries are returned.
func TestScalingHistoryIsLimited(t *testing.T) {
	now := time.Now()
	var entries []autoscale.Entry
	for i := range 150 {
		entries = append(entries, autoscale.NewEntry("job/worker", now.Add(time.Duration(i-150)*time.Second), 1,
			autoscale.Decision{From: i, To: i + 1}))
	}
	model, diags := readHistory(t, remembering(t, now, entries...), nil)
	if diags.HasError() || len(model.Entries) != 100 || model.Entries[0].From != 50 || model.Entries[99].From != 149 {
		t.Errorf("%v: %d entries", diags, len(model.Entries))
	}
}

// Parts that can't be read are a warning beside the rest.
func TestScalingHistoryLeavesOut(t *testing.T) {
	now := time.Now()
	corrupt := remembering(t, now, autoscale.NewEntry("job/worker", now, 1, autoscale.Decision{From: 1, To: 2}))
	corrupt.Set(engine.Item{Key: engine.Key{Kind: autoscale.HistoryKind, Name: "7"}, Revision: 1, Data: []byte("x")})
	model, diags := readHistory(t, corrupt, nil)
	if diags.HasError() || diags.WarningsCount() != 1 ||
		!strings.Contains(diags[0].Detail(), `reading part "7" of the scaling history`) || len(model.Entries) != 1 {
		t.Errorf("%v, %+v", diags, model)
	}
}

func TestScalingHistoryFails(t *testing.T) {
	for name, test := range map[string]struct {
		stub *providertest.Stub
		set  map[string]tftypes.Value
		says string
	}{
		"no cluster": {&providertest.Stub{}, nil, `There is no history of cluster "lab"`},
		"a cluster out of reach": {
			&providertest.Stub{Fails: providertest.Failures{"Get cluster": errors.New("down")}}, nil, "down",
		},
		"records out of reach": {providertest.Set(&providertest.Stub{
			Fails: providertest.Failures{"List scaling-history": errors.New("down")},
		}, providertest.LabOf("local")), nil, "down"},
		"a time that is none": {
			providertest.Set(&providertest.Stub{}, providertest.LabOf("local")),
			map[string]tftypes.Value{"since": providertest.Text("yesterday")},
			`"yesterday" is neither a time in RFC 3339`,
		},
		"an empty history": {providertest.Set(&providertest.Stub{}, providertest.LabOf("local")), nil, ""},
	} {
		model, diags := readHistory(t, test.stub, test.set)
		switch {
		case test.says == "" && (diags.HasError() || len(model.Entries) != 0 || *model.JSONLines != ""):
			t.Errorf("%s: %v, %+v", name, diags, model)
		case test.says != "" && (diags.ErrorsCount() != 1 || !strings.Contains(diags[0].Detail(), test.says)):
			t.Errorf("%s: %v does not say %q", name, diags, test.says)
		}
	}
}
