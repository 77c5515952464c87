package endpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Default returns the endpoint that the docker command uses in this environment (os.Getenv, or a stand-in): DOCKER_HOST
// with DOCKER_CERT_PATH; else the context named by DOCKER_CONTEXT or by currentContext in the configuration
// ($DOCKER_CONFIG or ~/.docker); else this machine's socket or pipe.
//
// It differs if docker would connect without verified TLS: DOCKER_TLS_VERIFY is always on, and a context that skips the
// verification is an error.
func Default(env func(string) string) (Endpoint, error) {
	config := env("DOCKER_CONFIG")
	if config == "" {
		home := env("HOME")
		if home == "" {
			var err error
			if home, err = os.UserHomeDir(); err != nil {
				return Endpoint{}, fmt.Errorf("locating Docker's configuration folder: %w; set DOCKER_CONFIG", err)
			}
		}
		config = filepath.Join(home, ".docker")
	}
	if host := strings.TrimSpace(env("DOCKER_HOST")); host != "" {
		return fromHost(host, config, env)
	}
	name, source, err := contextName(config, env)
	if err != nil {
		return Endpoint{}, err
	}
	if name == "" || name == "default" {
		return local(runtime.GOOS), nil
	}
	e, err := fromContext(config, name)
	if err != nil {
		return Endpoint{}, fmt.Errorf("docker context %q, chosen by %s: %w", name, source, err)
	}
	return e, nil
}

// local returns the endpoint of this machine's engine on an operating system.
func local(goos string) Endpoint {
	if goos == "windows" {
		return Endpoint{Scheme: SchemePipe, Socket: defaultPipe}
	}
	return Endpoint{Scheme: SchemeUnix, Socket: DefaultSocket}
}

// fromHost returns the endpoint of DOCKER_HOST.
func fromHost(host, config string, env func(string) string) (Endpoint, error) {
	if !strings.Contains(host, "://") {
		host = "tcp://" + host // as docker does
	}
	e, err := At(host, env)
	if err != nil {
		return Endpoint{}, fmt.Errorf("DOCKER_HOST: %w", err)
	}
	if e.Scheme == SchemeTCP && e.CertPath == "" && env("DOCKER_TLS_VERIFY") != "" {
		e.CertPath = config
	}
	return e, nil
}

// At returns the endpoint at an address, see [Parse]; the TLS files of a TCP one are those of DOCKER_CERT_PATH in this
// environment.
func At(address string, env func(string) string) (Endpoint, error) {
	e, err := Parse(address)
	if err == nil && e.Scheme == SchemeTCP {
		e.CertPath = env("DOCKER_CERT_PATH")
	}
	return e, err
}

// contextName returns the name of the current context, empty for none, and the source of the name.
func contextName(config string, env func(string) string) (name, source string, err error) {
	if name := env("DOCKER_CONTEXT"); name != "" {
		return name, "DOCKER_CONTEXT", nil
	}
	file := filepath.Join(config, "config.json")
	var content struct {
		CurrentContext string `json:"currentContext"`
	}
	if err := readJSON(file, &content); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("reading Docker's configuration: %w", err)
	}
	return content.CurrentContext, file, nil
}

// fromContext returns the endpoint of a context. Contexts are stored as in package cli/context/store of
// github.com/docker/cli, in folders named after the hash of the context's name.
func fromContext(config, name string) (Endpoint, error) {
	hash := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(hash[:])
	file := filepath.Join(config, "contexts", "meta", id, "meta.json")
	var meta struct {
		Endpoints map[string]struct {
			Host          string
			SkipTLSVerify bool
		}
	}
	err := readJSON(file, &meta)
	if errors.Is(err, fs.ErrNotExist) {
		return Endpoint{}, fmt.Errorf("no such context in %s; list them with docker context ls",
			filepath.Join(config, "contexts"))
	}
	if err != nil {
		return Endpoint{}, err
	}
	docker, ok := meta.Endpoints["docker"]
	if !ok {
		return Endpoint{}, fmt.Errorf("%s has no Docker endpoint", file)
	}
	if docker.Host == "" {
		return local(runtime.GOOS), nil
	}
	e, err := Parse(docker.Host)
	if err != nil {
		return Endpoint{}, err
	}
	if e.Scheme != SchemeTCP {
		return e, nil
	}
	if docker.SkipTLSVerify {
		return Endpoint{}, fmt.Errorf("it disables TLS verification for %s, so that anyone could impersonate it; "+
			"give it a CA: docker context update %s --docker host=%s,ca=ca.pem,cert=cert.pem,key=key.pem", e, name, e)
	}
	folder := filepath.Join(config, "contexts", "tls", id, "docker")
	switch _, err := os.Stat(folder); {
	case err == nil:
		e.CertPath = folder
	case !errors.Is(err, fs.ErrNotExist):
		return Endpoint{}, err
	}
	return e, nil
}

// readJSON decodes a file. Its errors name the file.
func readJSON(file string, content any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, content); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
