package telemetry

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// written is a history in a file.
type written struct {
	Times           [capacity]time.Time
	Next, Taken     int
	Begun           time.Time
	Host            [hostQuantities]series
	GPUs, Instances map[string][]series
	Seen            map[string]int
}

// save replaces the history in a file.
func (h *history) save(file string) error {
	var text bytes.Buffer
	err := gob.NewEncoder(&text).Encode(written{h.times, h.next, h.taken, h.begun, h.host, h.gpus, h.instances, h.seen})
	if err != nil {
		return err
	}
	// Half a history is worse than the previous one.
	temporary := filepath.Join(filepath.Dir(file), "."+filepath.Base(file))
	if err := os.WriteFile(temporary, text.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}

// loadHistory reads the history in a file. It is empty if there is none, or none that can be continued.
func loadHistory(file string, now time.Time) (*history, error) {
	opened, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return newHistory(), nil
	}
	if err != nil {
		return newHistory(), err
	}
	defer opened.Close()
	text, err := bounded.ReadAll(opened, bounded.History)
	if err != nil {
		return newHistory(), fmt.Errorf("%s: %w", file, err)
	}
	var w written
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&w); err != nil {
		return newHistory(), fmt.Errorf("%s: %w", file, err)
	}
	if err := w.check(now); err != nil {
		return newHistory(), fmt.Errorf("%s: %w", file, err)
	}
	h := newHistory()
	h.times, h.next, h.taken, h.begun, h.host = w.Times, w.Next, w.Taken, w.Begun, w.Host
	for name, seen := range w.Seen {
		h.seen[name] = seen
		if own, found := w.GPUs[name]; found {
			h.gpus[name] = widened(own, gpuQuantities)
		}
		if own, found := w.Instances[name]; found {
			h.instances[name] = widened(own, instanceQuantities)
		}
	}
	return h, nil
}

// check returns why a history can't be continued: a later version wrote it, or the clock was set back.
func (w written) check(now time.Time) error {
	for name := range w.Seen {
		gpu, instance := w.GPUs[name], w.Instances[name]
		if len(gpu) > gpuQuantities || len(instance) > instanceQuantities {
			return fmt.Errorf("%q has more quantities than this version measures", name)
		}
	}
	if w.Next < 0 || w.Next >= capacity || w.Taken < 0 {
		return fmt.Errorf("sample %d can't be at position %d", w.Taken, w.Next)
	}
	if w.Begun.After(now) {
		return fmt.Errorf("the last sample was taken at %s, which is in the future", w.Begun)
	}
	return nil
}
