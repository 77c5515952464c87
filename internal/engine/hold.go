package engine

import "context"

// Leaser is implemented by engines whose locks are leases: a holder that can't renew one loses it, and lives on.
type Leaser interface {
	// Hold takes a lock as Lock does. The context that it returns is done when ctx is, when the lock is released, and when it is lost: no later
	// than anybody else can have it, with the reason as its cause.
	Hold(ctx context.Context, name string, holder Holder) (held context.Context, release func() error, err error)
}

// Hold takes the named lock of an engine for somebody who acts for as long as he holds it. What he does is to end with the context that it
// returns; release is to be called all the same. See [Leaser].
func Hold(ctx context.Context, e Engine, name string, holder Holder) (held context.Context, release func() error, err error) {
	if l, ok := e.(Leaser); ok {
		return l.Hold(ctx, name, holder)
	}
	free, err := e.Lock(ctx, name, holder)
	if err != nil {
		return nil, nil, err
	}
	held, end := context.WithCancel(ctx)
	return held, func() error {
		end()
		return free()
	}, nil
}
