package top

import (
	"strings"
	"testing"
)

// Rows that contain the filter stay, below the titles of their tables; a group stays with the members that do.
func TestFilter(t *testing.T) {
	for filter, want := range map[string]struct{ there, gone []string }{
		"WORKER-2": {
			[]string{"HOST ", "gpu1:1", "\njob ", "job-worker-2"},
			[]string{"\ngpu1:0", "\ngpu2 ", "job-ps-0", "  job-worker-10"},
		},
		"gpu2": {
			[]string{"\ngpu2 ", "\njob ", "job-worker-10", "job-worker-3"}, []string{"\ngpu1:0", "\ngpu1 ", "job-ps-0"},
		},
		// the group's own row says that one failed
		"failed":  {[]string{"\njob ", "job-ps-0", "job-worker-10"}, []string{"\ngpu1 "}},
		"nowhere": {[]string{"HOST ", "NOTES"}, []string{"\ngpu1 ", "\njob "}},
		"":        {[]string{"\ngpu1 ", "\ngpu2 ", "\ngpu1:0", "job-ps-0"}, nil},
	} {
		s := lab()
		s.filter = filter
		got := shown(s.frame(byName, 0))
		for _, text := range want.there {
			if !strings.Contains(got, text) {
				t.Errorf("%q: %q is not in\n%s", filter, text, got)
			}
		}
		for _, text := range want.gone {
			if strings.Contains(got, text) {
				t.Errorf("%q: %q is in\n%s", filter, text, got)
			}
		}
	}
}
