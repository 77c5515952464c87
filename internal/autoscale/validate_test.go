package autoscale

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestValidate(t *testing.T) {
	valid := domain.ScalingSchedule{Start: "0 22 * * *", End: "0 6 * * *", TimeZone: "Europe/Warsaw", Count: 2}
	for name, test := range map[string]struct {
		change       func(s *domain.ScalingSchedule)
		path, detail string
	}{
		"no fault":       {func(*domain.ScalingSchedule) {}, "", ""},
		"UTC by default": {func(s *domain.ScalingSchedule) { s.TimeZone = "" }, "", ""},
		"a bad start": {
			func(s *domain.ScalingSchedule) { s.Start = "22:00" }, `schedules["night"].start`,
			`"22:00" is not a cron expression`,
		},
		"a bad end": {
			func(s *domain.ScalingSchedule) { s.End = "0 6 31 11 *" }, `schedules["night"].end`,
			`"0 6 31 11 *" never matches`,
		},
		"no such zone": {
			func(s *domain.ScalingSchedule) { s.TimeZone = "CET+1" }, `schedules["night"].time_zone`,
			`unknown time zone "CET+1"; use UTC or a name from the IANA database`,
		},
		"a missing time": {
			func(s *domain.ScalingSchedule) { s.Start = "" }, `schedules["night"].start`, "must be a cron expression",
		},
		"what domain says": {
			func(s *domain.ScalingSchedule) { s.Count = 9 }, `schedules["night"].count`,
			"between 1 (min) and 4 (max), got 9",
		},
	} {
		t.Run(name, func(t *testing.T) {
			schedule := valid
			test.change(&schedule)
			ps := Validate(domain.AutoscalingPolicy{
				Group: "serve", Role: "replica", Min: 1, Max: 4,
				Schedules: map[string]domain.ScalingSchedule{"night": schedule},
			})
			if test.path == "" {
				if len(ps) > 0 {
					t.Errorf("problems of a policy without any:\n%v", ps)
				}
				return
			}
			if len(ps) != 1 || ps[0].Path.String() != test.path || !strings.Contains(ps[0].Detail, test.detail) {
				t.Errorf("problems are\n%v\nwant one at %s with %q", ps, test.path, test.detail)
			}
		})
	}
}
