package engine

import (
	"reflect"
	"testing"
)

// A name in the list of reads that is no call's would have every such call count as a write.
func TestReadsAreCalls(t *testing.T) {
	calls := reflect.TypeFor[interface {
		Engine
		Joiner
		ImageStore
		Leaser
		Recogniser
		Specifier
	}]()
	for _, call := range reads {
		if _, found := calls.MethodByName(call); !found {
			t.Errorf("engines have no %s", call)
		}
	}
	for _, write := range []string{"Form", "PutCluster", "DeleteCluster", "PutGroup", "DeleteGroup", "PutPolicy", "PutRecord", "Lock", "Hold", "Stage", "Start", "Stop", "Remove", "StartController", "StopController", "ProvideImage", "RemoveImage"} {
		if _, found := calls.MethodByName(write); !found || !Changes(write) {
			t.Errorf("%s is a write of engines: %t, and is in the list of reads: %t", write, found, !Changes(write))
		}
	}
}
