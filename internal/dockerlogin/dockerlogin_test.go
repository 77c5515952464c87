package dockerlogin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/registry"
	"github.com/google/go-cmp/cmp"
)

func TestAuth(t *testing.T) {
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	// Written by docker login: "ada:secret", "bob:hidden" and "cyd:public" in base64.
	login := `{"auths": {
		"registry.example.com:5000": {"auth": "YWRhOnNlY3JldA=="}, "other.example.com": {"auth": "Ym9iOmhpZGRlbg=="},
		"https://index.docker.io/v1/": {"auth": "Y3lkOnB1YmxpYw=="}
	}}`
	if err := os.WriteFile(filepath.Join(config, "config.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("0", 64)
	given := Registries{"other.example.com": {Username: "eve", Password: "given"}}
	hub := Registries{"docker.io": {Token: "token"}}
	for _, test := range []struct {
		in    Registries
		image string
		want  registry.AuthConfig // without a server if there are none
	}{
		{given, "registry.example.com:5000/trainer:1", registry.AuthConfig{
			ServerAddress: "registry.example.com:5000", Username: "ada", Password: "secret",
		}},
		{given, "other.example.com/trainer@" + digest, registry.AuthConfig{
			ServerAddress: "other.example.com", Username: "eve", Password: "given",
		}},
		{given, "trainer:1", registry.AuthConfig{
			ServerAddress: "https://index.docker.io/v1/", Username: "cyd", Password: "public",
		}},
		{hub, "me/trainer:1", registry.AuthConfig{
			ServerAddress: "https://index.docker.io/v1/", IdentityToken: "token",
		}},
		{given, "unknown.example.com/trainer", registry.AuthConfig{}},
		{given, digest, registry.AuthConfig{}},
	} {
		encoded, err := test.in.Auth(test.image)
		if err != nil || (encoded == "") != (test.want.ServerAddress == "") {
			t.Errorf("%s is pulled with %q (%v)", test.image, encoded, err)
		}
		if encoded == "" {
			continue
		}
		got, err := registry.DecodeAuthConfig(encoded)
		if err != nil {
			t.Fatal(err)
		}
		got.Auth = "" // the same once more
		if diff := cmp.Diff(test.want, *got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.image, diff)
		}
	}
}

func TestRegistryAuths(t *testing.T) {
	given := Registries{
		"docker.io": {Username: "u", Password: "p"}, "registry.example.com:5000": {Token: "t"},
		"registry.example.com": {Token: "other"},
	}
	hub := registry.AuthConfig{ServerAddress: "https://index.docker.io/v1/", Username: "u", Password: "p"}
	own := registry.AuthConfig{ServerAddress: "registry.example.com:5000", IdentityToken: "t"}
	for name, test := range map[string]struct {
		bases []string
		want  map[string]registry.AuthConfig
	}{
		"no image": {nil, map[string]registry.AuthConfig{}},
		"Docker's": {[]string{"python:3.12"}, map[string]registry.AuthConfig{hub.ServerAddress: hub}},
		"a registry's, and another": {
			[]string{"registry.example.com:5000/base", "elsewhere.example.com/base"},
			map[string]registry.AuthConfig{own.ServerAddress: own},
		},
		"two": {
			[]string{"docker.io/me/base:1", "registry.example.com:5000/base@sha256:" + strings.Repeat("0", 64)},
			map[string]registry.AuthConfig{hub.ServerAddress: hub, own.ServerAddress: own},
		},
		"no names": {[]string{"", "$X/base", "Base"}, map[string]registry.AuthConfig{}},
	} {
		if diff := cmp.Diff(test.want, given.Auths(test.bases)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
