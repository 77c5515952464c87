package engine

import "context"

// HoldFor implements [Locker.Hold] for engines whose locks can't be lost before they are released.
func HoldFor(
	ctx context.Context, l Locker, name string, holder Holder,
) (held context.Context, release func() error, err error) {
	free, err := l.Lock(ctx, name, holder)
	if err != nil {
		return nil, nil, err
	}
	held, end := context.WithCancel(ctx)
	return held, func() error {
		end()
		return free()
	}, nil
}
