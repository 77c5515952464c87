package images

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/registry"
)

func TestRegistryAuth(t *testing.T) {
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	// Written by docker login: "ada:secret" and "bob:hidden" in base64.
	login := `{"auths": {"registry.example.com:5000": {"auth": "YWRhOnNlY3JldA=="}, "other.example.com": {"auth": "Ym9iOmhpZGRlbg=="}}}`
	if err := os.WriteFile(filepath.Join(config, "config.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	given := registries{
		"other.example.com": {Username: "eve", Password: "given"},
		"docker.io":         {Token: "token"},
	}
	for image, want := range map[string]registry.AuthConfig{
		"registry.example.com:5000/trainer:1": {Username: "ada", Password: "secret"},
		"other.example.com/trainer@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef": {
			Username: "eve", Password: "given",
		},
		"trainer:1": {IdentityToken: "token"},
	} {
		encoded, err := given.auth(image)
		if err != nil {
			t.Fatal(err)
		}
		got, err := registry.DecodeAuthConfig(encoded)
		if err != nil || got.Username != want.Username || got.Password != want.Password ||
			got.IdentityToken != want.IdentityToken {
			t.Errorf("%s is shown %q (%v)", image, encoded, err)
		}
	}
	for _, image := range []string{
		"unknown.example.com/trainer", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	} {
		if encoded, err := given.auth(image); err != nil || encoded != "" {
			t.Errorf("%s is shown %q (%v)", image, encoded, err)
		}
	}
}
