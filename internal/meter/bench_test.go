package meter

import (
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// BenchmarkRead reads an agent metric for each of 1,000 policies: 100 groups of 10 roles with 10 members each.
func BenchmarkRead(b *testing.B) {
	observation := Observation{Groups: map[string]domain.GroupDocument{}, Members: map[string][]domain.Observed{}}
	usage := engine.Usage{Members: map[string]engine.MemberUsage{}}
	var questions []Question
	started := noon.Add(-time.Hour)
	for g := range 100 {
		group := fmt.Sprintf("group-%d", g)
		document := domain.GroupDocument{Counts: map[string]int{}, Spec: domain.Group{Roles: map[string]domain.Role{}}}
		for r := range 10 {
			role := fmt.Sprintf("role-%d", r)
			document.Counts[role], document.Spec.Roles[role] = 10, domain.Role{
				Resources: domain.ResourceRequirements{CPUs: 4},
			}
			questions = append(questions, Question{
				Group: group, Role: role,
				Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUPercent}},
			})
			for i := range 10 {
				name := domain.MemberName(group, role, i)
				observation.Members[group] = append(observation.Members[group], domain.Observed{
					Name: name, Group: group, Role: role, Index: i, State: domain.StateRunning, StartedAt: &started,
				})
				usage.Members[name] = engine.MemberUsage{CPUs: domain.Instant(new(float64(i))), SampledAt: noon}
			}
		}
		observation.Groups[group] = document
	}
	m := New(reports(usage))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for _, got := range m.Read(b.Context(), noon.Add(time.Duration(i)*5*time.Second), observation, questions) {
			if got.Value != 112.5 {
				b.Fatalf("%+v", got)
			}
		}
	}
}
