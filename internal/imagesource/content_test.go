package imagesource

import (
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// TestContentDigest: the digest changes with everything that decides what runs, and with nothing else.
func TestContentDigest(t *testing.T) {
	image := func(change func(*v1.ConfigFile)) string {
		config := v1.ConfigFile{
			OS: "linux", Architecture: "amd64",
			RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{{Algorithm: "sha256", Hex: "11"}}},
			Config: v1.Config{
				Cmd: []string{"/trainer"}, Labels: map[string]string{"a": "1", "b": "2"},
				Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "true"}},
			},
		}
		change(&config)
		return ContentDigest(config)
	}
	same := image(func(*v1.ConfigFile) {})
	for name, change := range map[string]func(*v1.ConfigFile){
		"when it was made":    func(c *v1.ConfigFile) { c.Created = v1.Time{Time: time.Unix(1, 0)} },
		"its history":         func(c *v1.ConfigFile) { c.History = []v1.History{{CreatedBy: "docker build"}} },
		"by what it was made": func(c *v1.ConfigFile) { c.Author, c.Config.Image = "ada", "sha256:22" },
		"empty instead of none": func(c *v1.ConfigFile) {
			c.Config.Env, c.Config.Volumes = []string{}, map[string]struct{}{}
		},
	} {
		if image(change) != same {
			t.Errorf("%s makes it another image", name)
		}
	}
	seen := map[string]string{same: "none"}
	for name, change := range map[string]func(*v1.ConfigFile){
		"layers": func(c *v1.ConfigFile) {
			c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, v1.Hash{Algorithm: "sha256", Hex: "22"})
		},
		"platform":       func(c *v1.ConfigFile) { c.Architecture = "arm64" },
		"command":        func(c *v1.ConfigFile) { c.Config.Cmd = []string{"/tester"} },
		"entrypoint":     func(c *v1.ConfigFile) { c.Config.Entrypoint = []string{"/trainer"} },
		"environment":    func(c *v1.ConfigFile) { c.Config.Env = []string{"A=1"} },
		"user":           func(c *v1.ConfigFile) { c.Config.User = "1000" },
		"working folder": func(c *v1.ConfigFile) { c.Config.WorkingDir = "/srv" },
		"stop signal":    func(c *v1.ConfigFile) { c.Config.StopSignal = "SIGINT" },
		"a label":        func(c *v1.ConfigFile) { c.Config.Labels["a"] = "2" },
		"a volume":       func(c *v1.ConfigFile) { c.Config.Volumes = map[string]struct{}{"/data": {}} },
		"a port":         func(c *v1.ConfigFile) { c.Config.ExposedPorts = map[string]struct{}{"80/tcp": {}} },
		"health check":   func(c *v1.ConfigFile) { c.Config.Healthcheck.Interval = time.Second },
	} {
		digest := image(change)
		if other, found := seen[digest]; found {
			t.Errorf("images that differ by %s and by %s are the same", name, other)
		}
		seen[digest] = name
	}
}
