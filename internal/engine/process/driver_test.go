package process

import (
	"errors"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestRefusing: on operating systems other than Linux, every call to the engine fails with the reason, at the attribute
// that selects it.
func TestRefusing(t *testing.T) {
	for goos, name := range map[string]string{"darwin": "macOS", "windows": "Windows", "freebsd": "freebsd"} {
		engines := engine.Registry{Name: refusing(goos)}
		_, openErr := engines.Open(domain.ClusterRef{Engine: Name, Name: "lab"}, engine.Settings{})
		_, findErr := engines[Name].Clusters(t.Context(), "", engine.Settings{})
		for what, err := range map[string]error{"opened": openErr, "looked for": findErr} {
			problems, are := errors.AsType[domain.Problems](err)
			if !are || len(problems) != 1 || problems[0].Path.String() != "engine" {
				t.Fatalf("on %s, what is %s is refused by %v", goos, what, err)
			}
			for _, want := range []string{"not available on " +
				name, `use the engine "swarm"`, "or run Terraform on Linux"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("on %s, what is %s is refused by %q, which lacks %q", goos, what, err, want)
				}
			}
			if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrUnreachable) {
				t.Errorf("on %s, what is %s is taken for another error: %v", goos, what, err)
			}
		}
		if of, here := engines[Name], Driver(Program{}); of.Default != here.Default || of.Endpoint != here.Endpoint ||
			of.Lookup != here.Lookup {
			t.Errorf("on %s, the driver says of itself %+v", goos, of)
		}
	}
}
