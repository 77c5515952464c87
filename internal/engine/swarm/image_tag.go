package swarm

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// registryPatience is how long a registry may take to tell what a tag stands for.
const registryPatience = 15 * time.Second

// tags are what registries told of tags. Each is asked for once in a run of Terraform, whether it answers or not: an apply starts residents for
// each of its groups.
type tags struct {
	mu  sync.Mutex
	ask map[string]func(ctx context.Context) (tagged, error)
}

// tagged is an image by its tag and the digest that it has in its registry, or why that is not known.
type tagged struct {
	pinned string
	err    error
}

func newTags() *tags { return &tags{ask: map[string]func(ctx context.Context) (tagged, error){}} }

// pin returns the image by the digest that its registry has for it, as a manager finds it there.
func (t *tags) pin(ctx context.Context, m manager, name, auth string) (string, error) {
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
	told, err := ask(ctx)
	if err != nil {
		return "", err
	}
	return told.pinned, told.err
}

// pinnedPrefix is what an image begins with that was pinned by its tag: all but the digest. It is "" for what is no reference.
func pinnedPrefix(name string) string {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return ""
	}
	return reference.FamiliarString(reference.TagNameOnly(named)) + "@"
}

// isPinned reports whether an image is another by its tag and a digest.
func isPinned(image, name string) bool {
	prefix := pinnedPrefix(name)
	return prefix != "" && strings.HasPrefix(image, prefix) && digested(image)
}

// published reports whether one of these registry digests is of the repository of an image: then it was pulled from there, or pushed.
func published(name string, digests []string) bool {
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
