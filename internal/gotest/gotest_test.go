package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// packages are test packages in which some tests fail, some are skipped, and one doesn't compile.
var packages = map[string]string{
	"aspiring/a_test.go": `
func TestPasses(t *testing.T) { t.Log("nobody wants to know") }
func TestSkipped(t *testing.T) { t.Skip("there is no GPU\nat all") }
func TestNested(t *testing.T) {
	t.Run("fine", func(t *testing.T) { t.Log("nobody wants to know") })
	t.Run("bad", func(t *testing.T) { t.Error("what is wrong") })
	t.Run("skipped", func(t *testing.T) { t.Skip("there is no second GPU") })
}`,
	"broken/b_test.go": `
func TestPanics(t *testing.T) { panic("oh") }`,
	"careless/c_test.go": `
func TestMain(m *testing.M) { m.Run(); println("there is something left"); os.Exit(1) }
func TestLeaves(t *testing.T) {}`,
	"driftless/d_test.go": `
func TestFine(t *testing.T) {}`,
	"endless/e_test.go": `
func TestWaits(t *testing.T) { t.Log("on its way"); select {} }`,
	"futile/f_test.go": `
func TestNothing(t *testing.T) { nobody() }`,
	"sharing/s_test.go": `
func TestAgain(t *testing.T) { t.Log("programs in", os.Getenv("` + acctest.ProgramsVariable + `")) }`,
	"good/g.go": ``,
}

// in runs go test in a module with these packages, and returns its output with all times replaced by TIME.
func in(t *testing.T, args ...string) (printed string, code int) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("GOFLAGS", "-count=1 -p=1")
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module m\ngo 1.26\n")
	for name, code := range packages {
		head := "package p\n"
		if strings.Contains(code, "testing.T") {
			head += "import \"testing\"\n"
		}
		if strings.Contains(code, "os.") {
			head += "import \"os\"\n"
		}
		write(name, head+code)
	}
	var out strings.Builder
	code, err := run(args, &out)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`[0-9]+\.[0-9]+ ?s`).ReplaceAllString(out.String(), "TIME"), code
}

// expect fails unless the text contains these parts in this order.
func expect(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("it does not say %q after what comes before it:\n%s", part, text)
		}
		rest = after
	}
}

func TestPassed(t *testing.T) {
	printed, code := in(t, "./driftless", "./aspiring", "./good", "-run", "TestPasses|TestSkipped|TestFine")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	expect(t, printed, "?   \tm/good\t[no test files]\n", "Packages", "m/aspiring (2)\n", "The slowest tests:\n",
		"TestFine\n", "Skipped:\n        1    there is no GPU\n2 tests ran, 0 failed, and 1 were skipped.\n")
	if !regexp.MustCompile(`\n\nok  \tm/[a-z]+\tTIME\n$`).MatchString(printed) {
		t.Errorf("the last line is not go test's:\n%s", printed)
	}
	if strings.Count(printed, "ok  \t") != 2 || strings.Contains(printed, "nobody") ||
		strings.Contains(printed, "PASS") {
		t.Errorf("it says other things than go test:\n%s", printed)
	}
}

// The next go test runs after the first, even if that one failed, and the summary covers both.
func TestThen(t *testing.T) {
	printed, code := in(t, "./aspiring", "-then", "-run", "TestFine", "./driftless", "./good", "-then", "-run",
		"TestPasses", "./aspiring")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	expect(t, printed, "--- FAIL: TestNested (", "FAIL\tm/aspiring\t", "?   \tm/good\t[no test files]\n",
		"ok  \tm/driftless\t", "m/aspiring (4)\n",
		"4 tests ran, 1 failed, and 1 were skipped.\n",
		"m/aspiring TestNested failed, see above.\n", "\nok  \tm/aspiring\tTIME\nFAIL\n")
	if strings.Count(printed, "Packages") != 1 {
		t.Errorf("there is not exactly one summary:\n%s", printed)
	}
}

func TestFailed(t *testing.T) {
	printed, code := in(t, "./aspiring", "./broken", "./careless", "./driftless", "./futile")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	for _, parts := range [][]string{
		{
			"--- FAIL: TestNested/bad (TIME)\n    a_test.go:8: what is wrong\n", "--- FAIL: TestNested (",
			"FAIL\tm/aspiring\t",
		},
		{"--- FAIL: TestPanics (TIME)\n", "panic: oh", "FAIL\tm/broken\t"},
		{"there is something left\nFAIL\tm/careless\t"},
		{"undefined: nobody\n", "FAIL\tm/futile [build failed]\n"},
		{"Skipped:\n        1    there is no GPU\n        1    there is no second GPU\n"},
		{"5 tests ran, 2 failed, and 1 were skipped.\n", "m/aspiring TestNested failed, see above.\n"},
		{"\n\nok  \tm/driftless\tTIME\nFAIL\n"},
	} {
		expect(t, printed, parts...)
	}
	if strings.Contains(printed, "nobody wants to know") {
		t.Errorf("it prints what passing tests wrote:\n%s", printed)
	}
}

// Tests share a folder for programs, which is gone afterwards.
func TestPrograms(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	printed, code := in(t, "-v", "./sharing", "-then", "./sharing", "-run", "Again")
	folders := regexp.MustCompile(`programs in (.*)`).FindAllStringSubmatch(printed, -1)
	if code != 0 || len(folders) != 2 || folders[0][1] == "" || folders[0][1] != folders[1][1] {
		t.Fatalf("exit code %d; the folders are %q:\n%s", code, folders, printed)
	}
	if _, err := os.Stat(folders[0][1]); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", folders[0][1], err)
	}
}

// A test that is interrupted by the timeout is reported like one that ended.
func TestTimeout(t *testing.T) {
	printed, _ := in(t, "./endless", "-timeout=1s")
	expect(t, printed, "on its way", "panic: test timed out", "FAIL\tm/endless\t",
		"The slowest tests:\n", "TIME  m/endless TestWaits\n",
		"1 tests ran, 1 failed, and 0 were skipped.\n", "m/endless TestWaits failed, see above.\n")
}

func TestVerbose(t *testing.T) {
	printed, _ := in(t, "-v", "./aspiring")
	expect(t, printed,
		"=== RUN   TestPasses\n    a_test.go:4: nobody wants to know\n--- PASS: TestPasses (TIME)\n",
		"--- FAIL: TestNested (TIME)\n", "FAIL\tm/aspiring\t", "The slowest tests:\n")
	if strings.Count(printed, "what is wrong") != 1 {
		t.Errorf("it says so twice:\n%s", printed)
	}
}
