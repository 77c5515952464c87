package engine

import "context"

// RegistryLoginKeeper is implemented by engines whose hosts pull images also when nobody is there to log in to
// registries.
type RegistryLoginKeeper interface {
	// KeepRegistryLogins stores the available credentials for the registries of images, for members of a group or sweep
	// that are started from now on. For a registry without available credentials, those stored before stay.
	KeepRegistryLogins(ctx context.Context, group string, images []string) error
}

// KeepRegistryLogins stores credentials for the images of a group or sweep, on engines that need it.
func KeepRegistryLogins(ctx context.Context, e Engine, group string, images []string) error {
	keeper, ok := e.(RegistryLoginKeeper)
	if !ok || len(images) == 0 {
		return nil
	}
	return keeper.KeepRegistryLogins(ctx, group, images)
}
