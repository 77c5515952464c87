package members

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// logMark is the position of a reader in a member's log, within the log of one of its tasks.
type logMark struct {
	Task    string    `json:"task"`
	Created time.Time `json:"created"`
	// Out and Err are the positions in standard output and standard error: times are in order within each, but not
	// necessarily across both.
	Out streamMark `json:"out,omitzero"`
	Err streamMark `json:"err,omitzero"`
}

// streamMark records which lines of a stream were read: all before a time, and a number of those with that time.
type streamMark struct {
	At    time.Time `json:"at"`
	Count int       `json:"count"`
}

// add moves the mark past a line.
func (m *streamMark) add(at time.Time) {
	if !at.Equal(m.At) {
		*m = streamMark{At: at}
	}
	m.Count++
}

// Follow returns what a member wrote after a mark. The log of an earlier instance is skipped if it is unavailable.
func (e Members) Follow(ctx context.Context, member string, from engine.LogPlace) (engine.LogPart, error) {
	var mark logMark
	if from.Mark != "" {
		if err := json.Unmarshal([]byte(from.Mark), &mark); err != nil {
			return engine.LogPart{}, fmt.Errorf("reading the log of member %q: %q is not a mark of this engine", member,
				from.Mark)
		}
	}
	services, tasks, err := e.Reads.ServicesWithTasks(ctx)
	if err != nil {
		return engine.LogPart{}, err
	}
	instances, found := logged(e.Cluster, member, services, tasks)
	if !found {
		return engine.LogPart{}, fmt.Errorf("member %q of cluster %q: %w", member, e.Cluster, engine.ErrNotFound)
	}
	part := engine.LogPart{Next: from.Mark}
	for i, task := range instances {
		if from.Mark == "" && runOf(task) < from.Run || task.CreatedAt.Before(mark.Created) {
			continue
		}
		if task.ID != mark.Task {
			mark = logMark{Task: task.ID, Created: task.CreatedAt}
		}
		last := i == len(instances)-1
		reader := newLogReader(mark)
		err := e.readTask(ctx, task, reader)
		enough := errors.Is(err, errEnough)
		if err != nil && !enough && (last || ctx.Err() != nil) {
			return engine.LogPart{
				Next: part.Next, Lines: part.Lines,
			}, fmt.Errorf("reading the log of member %q: %w", member, err)
		}
		if !enough && (from.Rest || dockerapi.Ended(task)) {
			reader.end()
		}
		text, err := json.Marshal(reader.mark)
		if err != nil {
			return engine.LogPart{}, err
		}
		part.Lines, part.Next = append(part.Lines, reader.lines...), string(text)
		if enough {
			part.More = true
			break
		}
	}
	return part, nil
}

// runOf returns the run of its group that a task belongs to.
func runOf(task swarm.Task) int {
	id, _ := spec.IdentityOfTask(task)
	return id.Run
}

// readTask reads what a task wrote after the reader's mark.
func (e Members) readTask(ctx context.Context, task swarm.Task, reader *logReader) error {
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	asked := container.LogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true}
	if since := reader.since(); !since.IsZero() {
		asked.Since = since.Format(time.RFC3339Nano)
	}
	stream, err := m.TaskLogs(ctx, task.ID, asked)
	if err != nil {
		return err
	}
	defer stream.Close()
	return dockerapi.Demultiplex(reader.streams[0], reader.streams[1], stream)
}
