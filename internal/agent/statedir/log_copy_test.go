//go:build linux

package statedir

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// message is a message that a container wrote.
type message struct {
	at   time.Time
	text string
}

// messages are lines, some in parts, which have the same time.
func messages(random *rand.Rand, from time.Time, lines int, size int) (all []message, text string) {
	at := from
	var whole strings.Builder
	for line := range lines {
		at = at.Add(time.Duration(1 + random.IntN(int(400*time.Millisecond))))
		parts := 1 + random.IntN(3)
		for part := range parts {
			text := fmt.Sprintf("line %d part %d %s", line, part, strings.Repeat("x", random.IntN(size)))
			if part == parts-1 {
				text += "\n"
			}
			all = append(all, message{at, text})
			whole.WriteString(text)
		}
	}
	return all, whole.String()
}

// TestLogCopy: however often a copier dies, at whatever point, the log is complete and has nothing twice.
func TestLogCopy(t *testing.T) {
	for name, size := range map[string]int{"small": 40, "rotated": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // reproducible
			dir := create(t)
			earlier := "of the instance before\n"
			must(t, os.WriteFile(dir.Log("m"), []byte(earlier), 0o600))
			begin := time.Now().Add(-time.Minute)
			all, text := messages(random, begin, 60, size)
			logCopy, err := dir.CopyLog("m", begin)
			must(t, err)
			for {
				// Engines return everything from a given time.
				left := all
				for len(left) > 0 && left[0].at.Before(logCopy.Since()) {
					left = left[1:]
				}
				die := random.IntN(len(left) + 1)
				for _, m := range left[:die] {
					must(t, logCopy.Write(m.at, []byte(m.text)))
				}
				if die == len(left) {
					must(t, logCopy.Close())
					break
				}
				if random.IntN(2) == 0 { // it ends properly
					must(t, logCopy.Close())
				} else if last := left[max(die-1, 0)].text; die > 0 && logCopy.size >= int64(len(last)) &&
					logCopy.skip == 0 {
					// It wrote a part of the last one.
					must(t, os.Truncate(dir.Log("m"), logCopy.size-int64(random.IntN(len(last)))))
				}
				logCopy, err = dir.ContinueLog("m")
				must(t, err)
			}
			content, err := os.ReadFile(dir.Log("m"))
			must(t, err)
			if name == "rotated" {
				older, err := os.ReadFile(dir.Log("m") + ".1")
				must(t, err)
				if joined := append(older, content...); len(content) > maxLogSize+4<<20 ||
					!strings.HasSuffix(earlier+text, string(joined)) || bytes.Count(joined, []byte("\n")) < 5 {
					t.Errorf("%d and %d bytes, which are not the end of %d", len(older), len(content), len(text))
				}
				return
			}
			if string(content) != earlier+text {
				t.Errorf("it holds %q\nwant %q", content, earlier+text)
			}
			lines, err := dir.ReadLog("m", engine.LogOptions{Since: all[len(all)-1].at.Add(-5 * time.Second)})
			must(t, err)
			if len(lines) == 0 || len(lines) >= 60 {
				t.Errorf("%d lines since then", len(lines))
			}
		})
	}
}

// TestLogCopyOnFullDisk: what could not be written is copied once there is space.
func TestLogCopyOnFullDisk(t *testing.T) {
	dir := create(t)
	all := []message{{at(1), "one\n"}, {at(2), "two\n"}}
	logCopy, err := dir.CopyLog("m", at(0))
	must(t, err)
	must(t, logCopy.Write(all[0].at, []byte(all[0].text)))
	log := logCopy.log
	logCopy.log, err = os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must(t, err)
	if err := logCopy.Write(all[1].at, []byte(all[1].text)); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("a write to a full disk: %v", err)
	}
	must(t, errors.Join(logCopy.Close(), log.Close()))

	logCopy, err = dir.ContinueLog("m")
	must(t, err)
	for _, m := range all {
		if !m.at.Before(logCopy.Since()) {
			must(t, logCopy.Write(m.at, []byte(m.text)))
		}
	}
	must(t, logCopy.Close())
	if content, err := os.ReadFile(dir.Log("m")); err != nil || string(content) != "one\ntwo\n" {
		t.Errorf("it holds %q (%v)", content, err)
	}
}
