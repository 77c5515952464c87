package systemd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResolved(t *testing.T) {
	const output = `10.0.0.3        STREAM gpu3
10.0.0.3        DGRAM
10.0.0.3        RAW
fd00::3         STREAM
fd00::3         DGRAM

`
	if diff := cmp.Diff([]string{"10.0.0.3", "fd00::3"}, resolved(output)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found := resolved(""); found != nil {
		t.Errorf("of nothing: %v", found)
	}
}
