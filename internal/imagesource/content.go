package imagesource

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// content is the part of an image's configuration that decides what runs. All Docker Engines report it alike, unlike an
// image's ID, which depends on the image store.
type content struct {
	OS           string              `json:"os,omitempty"`
	Architecture string              `json:"architecture,omitempty"`
	Layers       []v1.Hash           `json:"layers,omitempty"`
	User         string              `json:"user,omitempty"`
	WorkingDir   string              `json:"working_dir,omitempty"`
	StopSignal   string              `json:"stop_signal,omitempty"`
	Env          []string            `json:"env,omitempty"`
	Entrypoint   []string            `json:"entrypoint,omitempty"`
	Cmd          []string            `json:"cmd,omitempty"`
	ExposedPorts map[string]struct{} `json:"exposed_ports,omitempty"`
	Volumes      map[string]struct{} `json:"volumes,omitempty"`
	Labels       map[string]string   `json:"labels,omitempty"`
	Healthcheck  *healthcheck        `json:"healthcheck,omitempty"`
}

// healthcheck leaves out StartInterval, which Docker Engines before 25 don't report.
type healthcheck struct {
	Test        []string      `json:"test,omitempty"`
	Interval    time.Duration `json:"interval,omitempty"`
	Timeout     time.Duration `json:"timeout,omitempty"`
	StartPeriod time.Duration `json:"start_period,omitempty"`
	Retries     int           `json:"retries,omitempty"`
}

// ContentDigest returns an image's content digest, "sha256:" and 64 hexadecimal digits, of its layers and of the parts
// of its configuration that decide what runs. It is the same in an archive and on every host, whatever the image store.
func ContentDigest(image v1.ConfigFile) string {
	c := content{
		OS: image.OS, Architecture: image.Architecture, Layers: image.RootFS.DiffIDs,
		User: image.Config.User, WorkingDir: image.Config.WorkingDir, StopSignal: image.Config.StopSignal,
		Env: image.Config.Env, Entrypoint: image.Config.Entrypoint, Cmd: image.Config.Cmd,
		ExposedPorts: image.Config.ExposedPorts, Volumes: image.Config.Volumes, Labels: image.Config.Labels,
	}
	if h := image.Config.Healthcheck; h != nil {
		c.Healthcheck = &healthcheck{h.Test, h.Interval, h.Timeout, h.StartPeriod, h.Retries}
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", c, err)) // can't happen: only strings, numbers, maps and slices
	}
	sum := sha256.Sum256(text)
	return encoded(sum[:])
}
