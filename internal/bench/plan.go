//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// planSizes are the sizes of the groups; the others are compared with the first, and the last has a bar.
var planSizes = []int{1, 10, 100, 1000}

// planBar is the factor by which the plan of the largest group may exceed that of a resource that holds the same maps
// and does nothing.
const planBar = 1.15

// planned holds the measurements of one group.
type planned struct {
	*workspace
	created, destroyed time.Duration
	// plain are plans as users make them, unread plans with -refresh=false.
	plain, unread sample
	calls         engineCalls
	// bare is the workspace of the resource with the same maps, and held are its plans.
	bare *workspace
	held sample
}

// plan measures plans without changes of groups that all exist at once, in turns.
func (b *bench) plan(ctx context.Context) (_ []fmt.Stringer, err error) {
	var groups []*planned
	defer func() {
		for _, g := range groups {
			err = errors.Join(err, g.close(ctx))
			if g.bare != nil {
				err = errors.Join(err, os.RemoveAll(g.bare.dir))
			}
		}
	}()
	for _, size := range planSizes {
		b.say("plan: creating a group of %s", count(size))
		w, err := b.workspace(ctx, fmt.Sprintf("plan-%d", size), size, true)
		if err != nil {
			return nil, err
		}
		g := &planned{workspace: w}
		groups = append(groups, g)
		if g.created, err = g.apply(ctx); err != nil {
			return nil, err
		}
		if g.bare, err = g.holdMaps(ctx); err != nil {
			return nil, err
		}
	}
	b.say("plan: planning each %d times", b.runs)
	for range b.runs {
		for _, g := range groups {
			plain, err := g.plan(ctx)
			if err != nil {
				return nil, err
			}
			unread, err := g.plan(ctx, "-refresh=false")
			if err != nil {
				return nil, err
			}
			held, err := g.bare.plan(ctx)
			if err != nil {
				return nil, err
			}
			g.plain, g.unread, g.held = append(g.plain, plain), append(g.unread, unread), append(g.held, held)
		}
	}
	for _, g := range groups {
		if g.calls, err = g.traced(ctx); err != nil {
			return nil, err
		}
		if g.destroyed, err = g.destroy(ctx); err != nil {
			return nil, err
		}
	}
	return planTable(groups), nil
}

func planTable(groups []*planned) []fmt.Stringer {
	first, last := groups[0], groups[len(groups)-1]
	t := &table{head: []string{
		"members", "plan", "bare maps", "ratio", "with -refresh=false", "engine calls", "time in them", "created in",
		"destroyed in",
	}}
	constant := true
	for _, g := range groups {
		constant = constant && g.calls.total() == first.calls.total()
		t.add(count(g.members), g.plain.seconds(), g.held.seconds(), times(g.plain.ratio(g.held)), g.unread.seconds(),
			count(g.calls.total()), fmt.Sprintf("%.1f ms", g.calls.time.Seconds()*1000),
			fmt.Sprintf("%.2f s", g.created.Seconds()), fmt.Sprintf("%.2f s", g.destroyed.Seconds()))
	}
	ratio := last.plain.ratio(last.held)
	return []fmt.Stringer{
		t,
		note("A third of the members have a slot of a GPU pool, and the resident agent measures all of them."),
		note("The floors are a resource of another provider with the same maps, which does nothing, and " +
			"-refresh=false: the same state and plan, but the group is not read."),
		note(fmt.Sprintf("Engine calls of a plan of %s: %s.", count(last.members), last.calls)),
		note(fmt.Sprintf("Bar: engine calls constant: %s.", verdict(constant))),
		note(fmt.Sprintf("Bar: %s members at most %s the plan of bare maps: %s, %s.",
			count(last.members), times(planBar), times(ratio), verdict(ratio <= planBar))),
	}
}

// holdMaps creates a workspace with another provider's resource that holds the group's maps.
func (g *planned) holdMaps(ctx context.Context) (*workspace, error) {
	show := g.bench.command(ctx, "show", "-json")
	show.Dir = g.dir
	text, err := show.Output()
	if err != nil {
		return nil, err
	}
	var state struct {
		Values struct {
			RootModule struct {
				Resources []struct {
					Type   string          `json:"type"`
					Values json.RawMessage `json:"values"`
				} `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return nil, err
	}
	held := &workspace{bench: g.bench, name: g.name + "-bare", dir: filepath.Join(g.bench.work, g.name+"-bare")}
	file := filepath.Join(held.dir, "maps.json")
	files := map[string][]byte{"main.tf": fmt.Appendf(nil, bareConfiguration, file)}
	for _, r := range state.Values.RootModule.Resources {
		if r.Type == "trainyard_group" {
			files["maps.json"] = r.Values
		}
	}
	if err := os.Mkdir(held.dir, 0o700); err != nil {
		return nil, err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(held.dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	if _, err := held.terraform(ctx, "init"); err != nil {
		return nil, err
	}
	_, err = held.apply(ctx)
	return held, err
}

// bareConfiguration is the configuration of a resource that holds the maps from a file.
const bareConfiguration = `
terraform {
  required_providers {
    bare = { source = "trainyard/bare" }
  }
}

resource "bare_maps" "job" {
  file = %q
}
`

func times(factor float64) string { return fmt.Sprintf("%.2f ×", factor) }

// traced plans once more with a log, and returns the engine calls in it.
func (g *planned) traced(ctx context.Context) (engineCalls, error) {
	calls := engineCalls{counts: map[string]int{}}
	err := g.tracedPlan(ctx, "engine call", calls.log)
	if err == nil && calls.total() == 0 {
		err = fmt.Errorf("%s: the provider's log names no engine call", g.name)
	}
	return calls, err
}

// tracedPlan plans with a log, and calls each with the fields of the lines that have this message.
func (w *workspace) tracedPlan(ctx context.Context, message string, each func(fields map[string]string) error) error {
	path := filepath.Join(w.dir, "provider.log")
	if _, err := w.terraformWith(ctx, []string{"TF_LOG_PROVIDER=DEBUG", "TF_LOG_PATH=" + path}, "plan",
		"-detailed-exitcode"); err != nil {
		return err
	}
	log, err := os.Open(path)
	if err != nil {
		return err
	}
	defer log.Close()
	return errors.Join(readLog(log, message, each), os.Remove(path))
}

// logField matches a field of a log line, with or without quotation marks.
var logField = regexp.MustCompile(`(\w+)=("[^"]*"|\S+)`)

// readLog reads Terraform's log. A call is a line such as
//
//	2026-01-01T00:00:00.000Z [DEBUG] provider.x.engine: engine call: call="Get group" duration=1.2ms …
func readLog(log io.Reader, message string, each func(fields map[string]string) error) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		_, text, found := strings.Cut(lines.Text(), ": "+message+": ")
		if !found {
			continue
		}
		fields := map[string]string{}
		for _, field := range logField.FindAllStringSubmatch(text, -1) {
			fields[field[1]] = strings.Trim(field[2], `"`)
		}
		if err := each(fields); err != nil {
			return err
		}
	}
	return lines.Err()
}

// engineCalls counts calls by name.
type engineCalls struct {
	names  []string // in the order of their first call
	counts map[string]int
	time   time.Duration
}

// log adds the call from a log line.
func (c *engineCalls) log(fields map[string]string) error {
	took, err := time.ParseDuration(fields["duration"])
	if err != nil {
		return fmt.Errorf("engine call with the duration %q: %w", fields["duration"], err)
	}
	c.add(fields["call"])
	c.time += took
	return nil
}

// add adds a call.
func (c *engineCalls) add(name string) {
	if c.counts[name] == 0 {
		c.names = append(c.names, name)
	}
	c.counts[name]++
}

// total returns the number of calls.
func (c engineCalls) total() (total int) {
	for _, n := range c.counts {
		total += n
	}
	return total
}

// String lists the calls with their counts.
func (c engineCalls) String() string {
	var list []string
	for _, name := range c.names {
		list = append(list, fmt.Sprintf("%s %d", name, c.counts[name]))
	}
	return strings.Join(list, ", ")
}
