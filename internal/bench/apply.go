//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// applyBars limit by how much apply and destroy of groups of these sizes may exceed Terraform's own time.
var applyBars = []struct {
	members int
	bar     time.Duration
}{{6, time.Second}, {200, 5 * time.Second}}

// applied holds the measurements of one configuration.
type applied struct {
	*workspace
	bar             time.Duration
	apply, destroys sample
}

// apply measures applies and destroys in turns: of a cluster without groups, which is Terraform's own time, and of
// groups.
func (b *bench) apply(ctx context.Context) (_ []fmt.Stringer, err error) {
	var configurations []*applied
	defer func() {
		for _, c := range configurations {
			err = errors.Join(err, c.close(ctx))
		}
	}()
	add := func(members int, bar time.Duration) error {
		w, err := b.workspace(ctx, fmt.Sprintf("apply-%d", members), members, false)
		if err == nil {
			configurations = append(configurations, &applied{workspace: w, bar: bar})
		}
		return err
	}
	if err := add(0, 0); err != nil {
		return nil, err
	}
	for _, size := range applyBars {
		if err := add(size.members, size.bar); err != nil {
			return nil, err
		}
	}
	b.say("apply: applying and destroying each %d times", b.runs)
	for range b.runs {
		for _, c := range configurations {
			apply, err := c.workspace.apply(ctx)
			if err != nil {
				return nil, err
			}
			destroy, err := c.destroy(ctx)
			if err != nil {
				return nil, err
			}
			c.apply, c.destroys = append(c.apply, apply), append(c.destroys, destroy)
		}
	}
	return applyTable(configurations), nil
}

func applyTable(configurations []*applied) []fmt.Stringer {
	own := configurations[0]
	t := &table{head: []string{"members", "operation", "took", "over Terraform's own", "bar", ""}}
	for _, c := range configurations {
		for _, operation := range []struct {
			name      string
			took, own sample
		}{{"apply", c.apply, own.apply}, {"destroy", c.destroys, own.destroys}} {
			if c == own {
				t.add("none", operation.name, operation.took.seconds(), "", "", "")
				continue
			}
			over := operation.took.minus(operation.own)
			t.add(count(c.members), operation.name, operation.took.seconds(), over.seconds(),
				fmt.Sprintf("< %.0f s", c.bar.Seconds()), verdict(over.median() < c.bar))
		}
	}
	return []fmt.Stringer{t}
}
