package domain

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFormerDrain checks that documents of earlier builds, in which the hook before a removal was a guard, can be read.
func TestFormerDrain(t *testing.T) {
	hook := &ScalingHook{URL: "http://broker/drain", Timeout: new(Duration(time.Minute))}
	for stored, want := range map[string]ScalingHooks{
		`{"spec": {"guards": {"drain": {"url": "http://broker/drain", "timeout": "1m"}}}}`: {
			BeforeRemoval: hook,
		},
		`{"spec": {"guards": {"remove": "highest_index"}}}`: {},
		`{"spec": {"hooks": {"before_removal": {"url": "http://broker/drain", "timeout": "1m"}}}}`: {
			BeforeRemoval: hook,
		},
		`{"spec": {"hooks": {"after_addition": {"url": "http://broker/drain", "timeout": "1m"}}, "guards": {"drain": {"url": "http://broker/drain", "timeout": "1m"}}}}`: {
			BeforeRemoval: hook, AfterAddition: hook,
		},
	} {
		var read, again AutoscalingPolicyDocument
		if err := json.Unmarshal([]byte(stored), &read); err != nil {
			t.Fatalf("%s: %v", stored, err)
		}
		if diff := cmp.Diff(want, read.Spec.Hooks); diff != "" {
			t.Errorf("%s is read as (-want +got):\n%s", stored, diff)
		}
		data, err := json.Marshal(read)
		if err == nil {
			err = json.Unmarshal(data, &again)
		}
		if diff := cmp.Diff(read, again); err != nil || diff != "" {
			t.Errorf("%s is stored as %s, and read as (-want +got):\n%s%v", stored, data, diff, err)
		}
	}
	var read AutoscalingPolicyDocument
	if err := json.Unmarshal([]byte(`{"spec": {"guards": {"drain": 1}}}`), &read); err == nil {
		t.Errorf("what is no hook is read as %+v", read)
	}
}

// TestSameChange checks that a change stays the same whenever it was decided, and however far it has progressed.
func TestSameChange(t *testing.T) {
	call := HookCall{
		ID: "a", Moment: BeforeRemoval, From: 4, To: 2, Members: []string{"w-3", "w-2"}, Remove: []string{"w-3", "w-2"},
	}
	for name, test := range map[string]struct {
		change func(c *HookCall)
		same   bool
	}{
		"decided again": {func(c *HookCall) {
			c.ID, c.At, c.Why, c.Called, c.Location, c.Progress = "b", time.Now(), "busy", time.Now(), "/", "1 %"
		}, true},
		"more members":  {func(c *HookCall) { c.To = 1 }, false},
		"others":        {func(c *HookCall) { c.Members = []string{"w-3", "w-1"} }, false},
		"one not there": {func(c *HookCall) { c.Members = c.Members[:1] }, false},
		"an addition":   {func(c *HookCall) { c.Moment = AfterAddition }, false},
	} {
		other := call
		if test.change(&other); call.Same(other) != test.same {
			t.Errorf("%s: the same: %v", name, !test.same)
		}
	}
}
