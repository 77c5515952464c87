package engine

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// ImageStore is implemented by engines whose hosts keep images to run members from.
type ImageStore interface {
	// FindImage returns the images that the cluster's hosts have under a name, by host; hosts without one are left out.
	// A missing cluster is [ErrNotFound]; a host that can't be asked is an error, unless it is known to be down.
	FindImage(ctx context.Context, name string) (map[string]Image, error)
	// ProvideImage ensures that all hosts of the cluster have the same image under its name, and returns it as they
	// have it. If a host has another image under that name, the error is an [*ImageTakenError], unless the spec
	// replaces that image; nothing was changed on any host then.
	ProvideImage(ctx context.Context, spec ImageSpec) (map[string]Image, error)
	// RemoveImage removes the name from an image on the hosts that have it, and the image with its last name. It
	// returns, by host, why a name was left: it is in use there, or belongs to another image.
	RemoveImage(ctx context.Context, name, id string) (left map[string]string, err error)
}

// Image is an image as a host has it.
type Image struct {
	// ID is the host's own ID of the image, "sha256:" and 64 hexadecimal digits. It may differ between hosts.
	ID string
	// Content is the content digest, the same on every host.
	Content string
	// Digests are the image's names with registry digests, if it came from a registry.
	Digests []string
	// Source is the digest of what Trainyard built it from for this cluster; empty for other images.
	Source string
	// Away means that the host is down, so that its images are unknown.
	Away bool
}

// Is reports whether the image has this content digest, this ID or this name with a digest.
func (i Image) Is(id string) bool {
	return id != "" && (i.Content == id || i.ID == id) || slices.Contains(i.Digests, id)
}

// ImageSpec is an image that hosts should have. It is loaded from an archive or built; without either, it is pulled.
type ImageSpec struct {
	Name string
	// ID is what [ImageID] will return for it, if that is known.
	ID string
	// Archive reads the image, whose ID has to be known, as a docker-archive without references. It is called once per
	// host.
	Archive func() (io.ReadCloser, error)
	Build   *ImageBuild
	// Replaces are the images, by host, that may lose the name to this one: as IDs, or names with digests.
	Replaces map[string]string
}

// ImageBuild is how an image is built on a host.
type ImageBuild struct {
	// Context reads the build context as a tar archive, and Dockerfile is a path in it.
	Context    func() (io.ReadCloser, error)
	Dockerfile string
	// Target is the stage to build, empty for the last, and Args are the values of ARG instructions.
	Target string
	Args   map[string]string
	// Bases are the images of FROM and COPY --from. The building host gets the credentials of their registries.
	Bases []string
	// Source is the digest of all that. An image built from the same source is not built again.
	Source string
}

// ImageTakenError is returned for a name that hosts have for other images.
type ImageTakenError struct {
	Name string
	// Wanted is the image that should have the name; empty if that is not known yet.
	Wanted string
	// Taken are the IDs of the images that have it, by host.
	Taken map[string]string
}

// Error names the hosts and the images.
func (e *ImageTakenError) Error() string {
	wanted := "the image"
	if e.Wanted != "" {
		wanted = e.Wanted
	}
	return fmt.Sprintf("%q is already the name of another image: %s. Nothing was changed. Give %s another name or "+
		"tag, or remove the other image (docker image rm %s), and run terraform apply again",
		e.Name, listImages(e.Taken), wanted, e.Name)
}

// listImages formats which images hosts have.
func listImages(ids map[string]string) string {
	var hosts []string
	for _, host := range slices.Sorted(maps.Keys(ids)) {
		hosts = append(hosts, fmt.Sprintf("host %s has %s", host, ids[host]))
	}
	return strings.Join(hosts, ", ")
}

// ImageID returns what identifies an image on all hosts that have it: its content digest, or the registry digest they
// share if their platforms have images of their own. If hosts have different images, that is an error.
func ImageID(name string, found map[string]Image) (string, error) {
	found = maps.Clone(found)
	maps.DeleteFunc(found, func(_ string, image Image) bool { return image.Away })
	if len(found) == 0 {
		return "", fmt.Errorf("none of the reachable hosts has the image %q", name)
	}
	contents := map[string]bool{}
	var digests [][]string
	for _, image := range found {
		contents[image.Content] = true
		digests = append(digests, image.Digests)
	}
	if len(contents) == 1 {
		for content := range contents {
			return content, nil
		}
	}
	if digest := CommonDigest(digests); digest != "" {
		return digest, nil
	}
	all := map[string]string{}
	for host, image := range found {
		all[host] = image.ID
	}
	return "", fmt.Errorf("the hosts have different images under the name %q: %s. Remove the wrong ones (docker "+
		"image rm %s), and run terraform apply again",
		name, listImages(all), name)
}

// CommonDigest returns the first registry digest that all hosts have in common, given each host's digests; "" if none.
func CommonDigest(digests [][]string) string {
	hosts := map[string]int{}
	for _, of := range digests {
		for _, digest := range of {
			hosts[digest]++
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(hosts)) {
		if hosts[digest] == len(digests) {
			return digest
		}
	}
	return ""
}

// Images returns the engine's image store, or an error if its hosts keep no images.
func Images(e Engine) (ImageStore, error) {
	switch i := e.(type) {
	case readingOnce:
		return Images(i.Engine)
	case intercepted:
		store, err := Images(i.engine)
		if err != nil {
			return nil, err
		}
		return interceptedImages{store, i}, nil
	}
	store, ok := e.(ImageStore)
	if traits := e.Traits(); !ok && traits.Supports.Images {
		return nil, fmt.Errorf("the engine %q does not copy images to its hosts: push it to a registry that they can "+
			"reach, or load it on each of them (docker load --input FILE)", traits.Name)
	} else if !ok {
		return nil, fmt.Errorf("the engine %q runs no images: use a cluster of another engine", traits.Name)
	}
	return store, nil
}

// interceptedImages is the image store of an engine whose calls are intercepted.
type interceptedImages struct {
	store ImageStore
	calls intercepted
}

func (i interceptedImages) FindImage(ctx context.Context, name string) (map[string]Image, error) {
	return reads(ctx, i.calls, "FindImage", func() (map[string]Image, error) { return i.store.FindImage(ctx, name) })
}

func (i interceptedImages) ProvideImage(ctx context.Context, spec ImageSpec) (map[string]Image, error) {
	return changes(ctx, i.calls, "ProvideImage",
		func() (map[string]Image, error) { return i.store.ProvideImage(ctx, spec) })
}

func (i interceptedImages) RemoveImage(ctx context.Context, name, id string) (map[string]string, error) {
	return changes(ctx, i.calls, "RemoveImage",
		func() (map[string]string, error) { return i.store.RemoveImage(ctx, name, id) })
}
