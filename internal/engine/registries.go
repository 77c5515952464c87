package engine

import "context"

// RegistryLoginKeeper is implemented by engines whose hosts pull images also while nobody is there who could log in to
// registries.
type RegistryLoginKeeper interface {
	// KeepRegistryLogins stores what is at hand to be shown to the registries of images, for members of a group or
	// sweep that are started from now on. Of a registry for which nothing is at hand, what was stored before stays.
	KeepRegistryLogins(ctx context.Context, group string, images []string) error
}

// KeepRegistryLogins stores what registries are shown for the images of a group or sweep, on engines that need it.
func KeepRegistryLogins(ctx context.Context, e Engine, group string, images []string) error {
	keeper, ok := e.(RegistryLoginKeeper)
	if !ok || len(images) == 0 {
		return nil
	}
	return keeper.KeepRegistryLogins(ctx, group, images)
}
