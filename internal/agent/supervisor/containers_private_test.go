//go:build linux

package supervisor_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestContainerPrivateImage: a registry gets the credentials stored for the member, else those of docker login on the
// host, and its refusal is reported with advice.
func TestContainerPrivateImage(t *testing.T) {
	l := newContainerLab(t, "c-private")
	listener, err := testbed.SharedHosts(t, testbed.HostOptions{Hosts: 1, Docker: true}).Listen(0)
	l.must(err)
	shop := acctest.ServeRegistry(t, listener, "right")
	name := shop.Push(t, acctest.Member, "private/member:1")
	t.Cleanup(func() {
		_, err := l.host.Client().ImageRemove(testContext, name, image.RemoveOptions{Force: true})
		l.must(err)
		l.out("rm -rf /root/.docker")
	})
	run := 1
	ends := func(login string) (code int, says string) {
		l.Helper()
		run++
		spec := l.contained("worker", "")
		spec.Image, spec.Args, spec.Container.PullPolicy, spec.Run = name, []string{"exit:7"}, domain.PullAlways, run
		if login != "" {
			auth, err := registry.EncodeAuthConfig(registry.AuthConfig{
				ServerAddress: shop.Host, Username: acctest.RegistryUser, Password: login,
			})
			l.must(err)
			l.must(l.files().WriteRegistryLogin(spec, auth))
		}
		state := l.ended(spec)
		return *state.ExitCode, state.LastError
	}
	expect := func(login string, code int, says ...string) {
		l.Helper()
		got, lastError := ends(login)
		if got != code {
			t.Errorf("with %q it ends with %d: %s", login, got, lastError)
		}
		for _, words := range says {
			if !strings.Contains(lastError, words) {
				t.Errorf("with %q it says %q, without %q", login, lastError, words)
			}
		}
	}
	const begin = "it can't be started: the Docker Engine says: image "
	expect("", 125, begin, `give the provider some for "`+shop.Host+`" in docker.registries and apply again`,
		"sudo docker login "+shop.Host)
	expect("wrong", 125, begin, "with the credentials that Terraform brought: ",
		`give the provider others for "`+shop.Host+`" in docker.registries and apply again`)
	expect("right", 7)
	if modes := l.sh("find " + stateDir + "/c-private/secrets -type f -printf '%m %u.'"); modes != "600 root." {
		t.Errorf("the credentials are %s", modes)
	}

	// As docker login does.
	log := func(password string) {
		encoded := base64.StdEncoding.EncodeToString([]byte(acctest.RegistryUser + ":" + password))
		l.sh(`mkdir -p /root/.docker && echo '{"auths": {"` + shop.Host +
			`": {"auth": "` + encoded + `"}}}' >/root/.docker/config.json`)
	}
	log("right")
	expect("wrong", 7)
	log("wrong")
	expect("right", 7)
	expect("also wrong", 125, "with the credentials that Terraform brought: ",
		"with the credentials of docker login on this host: ", "sudo docker login "+shop.Host)
	l.sh("rm -rf " + stateDir + "/c-private/secrets/job")
	expect("", 125, "with the credentials of docker login on this host: ")
	log("right")
	expect("", 7)
}
