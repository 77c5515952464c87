package acctest

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// aloneVariable names the test to run in a process of its own.
const aloneVariable = "TRAINYARD_TEST_ALONE"

// Alone reruns a test in a separate process, where nothing else uses memory and a fatal error ends nothing else. It
// returns true in that process; in the original one the test has nothing left to do.
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVariable) == t.Name() {
		return true
	}
	child := exec.CommandContext(Bounded(t), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v") //nolint:gosec // this test
	child.Env = append(os.Environ(), aloneVariable+"="+t.Name())
	output, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("%s", output)
	return false
}

// Allocated returns how many bytes do allocates, including those freed meanwhile: an upper bound for its memory use.
func Allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Endless returns a reader that repeats a text without end.
func Endless(text string) io.Reader { return &endless{text: text} }

type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		copied := copy(p[n:], e.text[e.at:])
		n, e.at = n+copied, (e.at+copied)%len(e.text)
	}
	return n, nil
}
