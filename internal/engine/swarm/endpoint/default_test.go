package endpoint

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// write writes a file and creates the folders above it.
func write(t testing.TB, content string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte(content), 0o600))
}

// contextID is the name of a context's folders, as created by docker context create.
func contextID(name string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(name))) }

func TestDefault(t *testing.T) {
	home := t.TempDir()
	config := filepath.Join(home, ".docker")
	meta := func(name, content string) {
		write(t, content, config, "contexts", "meta", contextID(name), "meta.json")
	}
	// As written by docker context create.
	meta("lab",
		`{"Name":"lab","Metadata":{"Description":"the lab"},"Endpoints":{"docker":{"Host":"ssh://ops@gpu1","SkipTLSVerify":false}}}`)
	meta("tls", `{"Name":"tls","Metadata":{},"Endpoints":{"docker":{"Host":"tcp://gpu2:2376","SkipTLSVerify":false}}}`)
	write(t, "", config, "contexts", "tls", contextID("tls"), "docker", "ca.pem")
	meta("bare",
		`{"Name":"bare","Metadata":{},"Endpoints":{"docker":{"Host":"tcp://gpu2:2376","SkipTLSVerify":false}}}`)
	meta("skips",
		`{"Name":"skips","Metadata":{},"Endpoints":{"docker":{"Host":"tcp://gpu2:2376","SkipTLSVerify":true}}}`)
	meta("hostless", `{"Name":"hostless","Metadata":{},"Endpoints":{"docker":{"SkipTLSVerify":false}}}`)
	meta("other", `{"Name":"other","Metadata":{},"Endpoints":{"kubernetes":{}}}`)
	meta("broken", `{"Name":`)
	meta("http", `{"Name":"http","Metadata":{},"Endpoints":{"docker":{"Host":"http://gpu2","SkipTLSVerify":false}}}`)

	current := filepath.Join(home, "current")
	write(t, `{"auths":{},"currentContext":"lab"}`, current, "config.json")
	must(t, os.Symlink(filepath.Join(config, "contexts"), filepath.Join(current, "contexts")))
	corrupt := filepath.Join(home, "corrupt")
	write(t, `{"currentContext":`, corrupt, "config.json")

	local := local(runtime.GOOS)
	ssh := Endpoint{Scheme: SchemeSSH, User: "ops", Host: "gpu1", Port: 22, Socket: DefaultSocket}
	tcp := func(certPath string) Endpoint {
		return Endpoint{Scheme: SchemeTCP, Host: "gpu2", Port: 2376, CertPath: certPath}
	}
	tests := map[string]struct {
		env  map[string]string
		want Endpoint
		err  string
	}{
		"nothing": {want: local},
		"host":    {env: map[string]string{"DOCKER_HOST": "ssh://ops@gpu1"}, want: ssh},
		"host over context": {
			env:  map[string]string{"DOCKER_HOST": "unix:///run/other.sock", "DOCKER_CONTEXT": "lab"},
			want: Endpoint{Scheme: SchemeUnix, Socket: "/run/other.sock"},
		},
		"host without scheme": {env: map[string]string{"DOCKER_HOST": "gpu2:2376"}, want: tcp("")},
		"host with certificates": {
			env: map[string]string{
				"DOCKER_HOST": "tcp://gpu2", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/certs",
			},
			want: tcp("/certs"),
		},
		"host, default folder": {
			env: map[string]string{"DOCKER_HOST": "tcp://gpu2", "DOCKER_TLS_VERIFY": "1"}, want: tcp(config),
		},
		"host by ssh has no TLS": {
			env: map[string]string{"DOCKER_HOST": "ssh://ops@gpu1", "DOCKER_CERT_PATH": "/certs"}, want: ssh,
		},
		"invalid host": {
			env: map[string]string{"DOCKER_HOST": "http://gpu2"}, err: "DOCKER_HOST: engine address",
		},
		"context": {env: map[string]string{"DOCKER_CONTEXT": "lab"}, want: ssh},
		"context with TLS": {
			env:  map[string]string{"DOCKER_CONTEXT": "tls"},
			want: tcp(filepath.Join(config, "contexts", "tls", contextID("tls"), "docker")),
		},
		"context without TLS":  {env: map[string]string{"DOCKER_CONTEXT": "bare"}, want: tcp("")},
		"context without host": {env: map[string]string{"DOCKER_CONTEXT": "hostless"}, want: local},
		"context skipping TLS": {env: map[string]string{"DOCKER_CONTEXT": "skips"}, err: "disables TLS verification"},
		"context by HTTP":      {env: map[string]string{"DOCKER_CONTEXT": "http"}, err: "plain HTTP"},
		"other context":        {env: map[string]string{"DOCKER_CONTEXT": "other"}, err: "no Docker endpoint"},
		"broken context":       {env: map[string]string{"DOCKER_CONTEXT": "broken"}, err: "meta.json"},
		"absent context": {
			env: map[string]string{"DOCKER_CONTEXT": "gone"}, err: `"gone", chosen by DOCKER_CONTEXT: no such context`,
		},
		"default context": {
			env: map[string]string{"DOCKER_CONTEXT": "default", "DOCKER_CONFIG": current}, want: local,
		},
		"current context":       {env: map[string]string{"DOCKER_CONFIG": current}, want: ssh},
		"corrupt configuration": {env: map[string]string{"DOCKER_CONFIG": corrupt}, err: "config.json"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"HOME": home}
			maps.Copy(env, test.env)
			got, err := Default(func(key string) string { return env[key] })
			if test.err != "" {
				expect(t, err, nil, test.err)
				return
			}
			must(t, err)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestLocal(t *testing.T) {
	for goos, want := range map[string]string{
		"linux": "unix:///var/run/docker.sock", "darwin": "unix:///var/run/docker.sock",
		"windows": "npipe:////./pipe/docker_engine",
	} {
		if got := local(goos).String(); got != want {
			t.Errorf("the engine of a machine with %s is at %s, want %s", goos, got, want)
		}
	}
}

func TestAt(t *testing.T) {
	env := func(name string) string { return map[string]string{"DOCKER_CERT_PATH": "/certs"}[name] }
	for address, want := range map[string]Endpoint{
		"tcp://gpu2":     {Scheme: SchemeTCP, Host: "gpu2", Port: 2376, CertPath: "/certs"},
		"ssh://ops@gpu1": {Scheme: SchemeSSH, User: "ops", Host: "gpu1", Port: 22, Socket: DefaultSocket},
	} {
		if got, err := At(address, env); err != nil || got != want {
			t.Errorf("%s: got %+v (%v), want %+v", address, got, err, want)
		}
	}
}
