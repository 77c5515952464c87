package images

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

// registryPatience is how long a registry may take to resolve a tag.
const registryPatience = 15 * time.Second

// Tags caches the digests of tags for a run of Terraform, failures included: an apply starts residents for each group.
type Tags struct {
	mu  sync.Mutex
	ask map[string]func(ctx context.Context) (tagged, error)
}

// tagged is an image pinned to its registry's digest, or the error why the digest is unknown.
type tagged struct {
	pinned string
	err    error
}

// NewTags returns an empty cache.
func NewTags() *Tags { return &Tags{ask: map[string]func(ctx context.Context) (tagged, error){}} }

// Pin returns the image pinned to its registry's digest, which is looked up once per run.
func (e Images) Pin(ctx context.Context, m dockerapi.Manager, name, auth string) (string, error) {
	return e.tags.pin(ctx, m, name, auth)
}

// pin returns the image pinned to the digest that a manager finds in its registry.
func (t *Tags) pin(ctx context.Context, m dockerapi.Manager, name, auth string) (string, error) {
	t.mu.Lock()
	ask, found := t.ask[name]
	if !found {
		ask = engine.Once(func(ctx context.Context) (tagged, error) {
			ctx, cancel := context.WithTimeout(ctx, registryPatience)
			defer cancel()
			answer, err := m.DistributionInspect(ctx, name, auth)
			if err != nil {
				return tagged{err: err}, nil
			}
			return tagged{pinned: pinnedPrefix(name) + answer.Descriptor.Digest.String()}, nil
		})
		t.ask[name] = ask
	}
	t.mu.Unlock()
	image, err := ask(ctx)
	if err != nil {
		return "", err
	}
	return image.pinned, image.err
}

// pinnedPrefix returns a pinned image's reference without the digest, "" for an invalid reference.
func pinnedPrefix(name string) string {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return ""
	}
	return reference.FamiliarString(reference.TagNameOnly(named)) + "@"
}

// IsPinned reports whether an image is name, pinned to a digest.
func IsPinned(image, name string) bool {
	prefix := pinnedPrefix(name)
	return prefix != "" && strings.HasPrefix(image, prefix) && digested(image)
}

// Published reports whether one of these registry digests is from an image's own repository: it was pulled or pushed
// there.
func Published(name string, digests []string) bool {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return false
	}
	for _, d := range digests {
		if other, err := reference.ParseNormalizedNamed(d); err == nil && other.Name() == named.Name() {
			return true
		}
	}
	return false
}
