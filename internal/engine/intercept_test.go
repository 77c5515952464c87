package engine

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
)

// TestInterceptSeesAllCalls: each method that takes a context is seen before it reaches the engine, and under a name of
// its own. Read-only calls are listed once more here: a wrong declaration would leave crashes of a changing call
// untested.
func TestInterceptSeesAllCalls(t *testing.T) {
	reads := []string{
		"Complete", "FindFiles", "FindImage", "Follow", "GPUs", "Get ", "Inventory", "JoinToken", "List ", "Logs",
		"MissingFolders", "Observe", "Preflight", "ReadFolder", "Recognise", "Residents", "Specified", "Survey",
		"Usage", "Watch",
	}
	stop := errors.New("not made")
	var seen []Call
	intercepted := Intercept(storing{}, func(_ context.Context, call Call, _ func() error) error {
		seen = append(seen, call)
		return stop
	})
	images, err := Images(intercepted)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files(intercepted)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for declared, of := range map[reflect.Type]any{
		reflect.TypeFor[Engine](): intercepted, reflect.TypeFor[ImageStore](): images,
		reflect.TypeFor[FileStore](): files, reflect.TypeFor[Joiner](): intercepted,
		reflect.TypeFor[RegistryLoginKeeper](): intercepted,
	} {
		for method := range declared.Methods() {
			if method.Type.NumIn() == 0 || method.Type.In(0) != reflect.TypeFor[context.Context]() {
				continue // no I/O
			}
			arguments := []reflect.Value{reflect.ValueOf(t.Context())}
			for i := 1; i < method.Type.NumIn(); i++ {
				arguments = append(arguments, reflect.Zero(method.Type.In(i)))
			}
			before := len(seen)
			results := reflect.ValueOf(of).MethodByName(method.Name).Call(arguments)
			if err := results[len(results)-1].Interface(); len(seen) != before+1 || err != stop { //nolint:errorlint // exactly this one
				t.Errorf("%s makes %d calls, and returns %v", method.Name, len(seen)-before, err)
			}
		}
	}
	for _, call := range seen {
		if names[call.Name] {
			t.Errorf("there are two calls %q", call.Name)
		}
		names[call.Name] = true
		if want := !slices.Contains(reads, call.Name); call.Changes != want {
			t.Errorf("%s changes something: %t", call.Name, call.Changes)
		}
	}
	for _, name := range reads {
		if !names[name] {
			t.Errorf("there is no call %q among %q", name, slices.Sorted(maps.Keys(names)))
		}
	}
}
