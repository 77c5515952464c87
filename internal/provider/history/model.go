package history

import (
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// Model is the model of trainyard_scaling_history.
type Model struct {
	Cluster     resourcekit.ClusterRead `tfsdk:"cluster"`
	Group       types.String            `tfsdk:"group"`
	Role        types.String            `tfsdk:"role"`
	Since       types.String            `tfsdk:"since"`
	Limit       types.Int64             `tfsdk:"limit"`
	OnlyChanges types.Bool              `tfsdk:"only_changes"`
	Entries     []entryModel            `tfsdk:"entries"`
	JSONLines   *string                 `tfsdk:"json_lines"`
}

type entryModel struct {
	Group      string               `tfsdk:"group"`
	Role       string               `tfsdk:"role"`
	At         timetypes.RFC3339    `tfsdk:"at"`
	Until      timetypes.RFC3339    `tfsdk:"until"`
	Decisions  int64                `tfsdk:"decisions"`
	From       int64                `tfsdk:"from"`
	To         int64                `tfsdk:"to"`
	Ready      int64                `tfsdk:"ready"`
	Metrics    []entryMetricModel   `tfsdk:"metrics"`
	Guards     []entryGuardModel    `tfsdk:"guards"`
	Vertical   []entryVerticalModel `tfsdk:"vertical"`
	Resized    *string              `tfsdk:"resized"`
	Limits     []string             `tfsdk:"limits"`
	Why        string               `tfsdk:"why"`
	Outcome    string               `tfsdk:"outcome"`
	OutcomeWhy *string              `tfsdk:"outcome_why"`
	ChangeID   *string              `tfsdk:"change_id"`
}

type entryMetricModel struct {
	Name       string        `tfsdk:"name"`
	Value      types.Float64 `tfsdk:"value"`
	AgeSeconds types.Float64 `tfsdk:"age_seconds"`
	Count      *int64        `tfsdk:"count"`
	Why        string        `tfsdk:"why"`
}

type entryGuardModel struct {
	Name  string        `tfsdk:"name"`
	Value types.Float64 `tfsdk:"value"`
	Why   *string       `tfsdk:"why"`
	Never bool          `tfsdk:"never"`
}

type entryVerticalModel struct {
	Name      string        `tfsdk:"name"`
	Requested types.Float64 `tfsdk:"requested"`
	Target    types.Float64 `tfsdk:"target"`
	Lower     types.Float64 `tfsdk:"lower"`
	Upper     types.Float64 `tfsdk:"upper"`
	Why       string        `tfsdk:"why"`
}

// selection returns the part of the history that the configuration selects.
func (m Model) selection(now time.Time) (autoscale.Selection, error) {
	s := autoscale.Selection{
		Group: m.Group.ValueString(), Role: m.Role.ValueString(), OnlyChanges: m.OnlyChanges.ValueBool(),
		Limit: defaultEntries,
	}
	if !m.Limit.IsNull() {
		s.Limit = int(m.Limit.ValueInt64())
	}
	var err error
	if !m.Since.IsNull() {
		s.Since, err = resourcekit.ParseSince(m.Since.ValueString(), now)
	}
	return s, err
}

func (m *Model) flatten(entries []autoscale.Entry) error {
	m.Entries = make([]entryModel, 0, len(entries))
	var lines strings.Builder
	for _, e := range entries {
		m.Entries = append(m.Entries, flattenEntry(e))
		line, err := e.JSON()
		if err != nil {
			return err
		}
		lines.Write(line)
	}
	m.JSONLines = new(lines.String())
	return nil
}

func flattenEntry(e autoscale.Entry) entryModel {
	group, role := e.Key()
	m := entryModel{
		Group: group, Role: role, At: resourcekit.Moment(&e.At), Until: resourcekit.Moment(&e.Until),
		Decisions: int64(e.Decisions),
		From:      int64(e.From), To: int64(e.To), Ready: int64(e.Ready), Metrics: []entryMetricModel{},
		Guards: []entryGuardModel{}, Vertical: []entryVerticalModel{}, Resized: resourcekit.OrNull(e.Resized),
		Limits: append([]string{}, e.Changed...),
		Why:    e.Why(), Outcome: string(e.Outcome), OutcomeWhy: resourcekit.OrNull(e.OutcomeWhy),
		ChangeID: resourcekit.OrNull(e.Change),
	}
	for _, metric := range e.Metrics {
		shown := entryMetricModel{
			Name: metric.Name, Value: types.Float64PointerValue(metric.Value),
			Count: resourcekit.Integer[int64](metric.Count), Why: metric.Why,
		}
		if metric.Value != nil || metric.Age > 0 {
			shown.AgeSeconds = types.Float64Value(metric.Age)
		}
		m.Metrics = append(m.Metrics, shown)
	}
	for _, g := range e.Guards {
		m.Guards = append(m.Guards,
			entryGuardModel{g.Name, types.Float64PointerValue(g.Value), resourcekit.OrNull(g.Why), g.Never})
	}
	for _, v := range e.Vertical {
		number := types.Float64PointerValue
		m.Vertical = append(m.Vertical,
			entryVerticalModel{v.Name, number(v.Requested), number(v.Target), number(v.Lower), number(v.Upper), v.Why})
	}
	return m
}
