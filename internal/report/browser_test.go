//go:build linux

package report

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// inBrowser opens a page in a headless Chromium, and returns its document once its scripts have run.
func inBrowser(t *testing.T, page string, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("this needs a browser: apt-get install --no-install-recommends chromium: %v", err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "lab.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir=" + filepath.Join(dir, "profile"), "--dump-dom",
	}, args...)
	// Into a file, as processes of the browser may keep a pipe open after its end.
	dump, err := os.Create(filepath.Join(dir, "document"))
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close()
	command := exec.CommandContext(acctest.Bounded(t), program, append(args, "file://"+file)...)
	command.Stdout = dump
	if err := command.Run(); err != nil {
		t.Fatalf("chromium: %v", err)
	}
	document, err := os.ReadFile(dump.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// A browser runs the page's own script despite the content security policy, and no other.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes some seconds")
	}
	page := written(t, lab(3))
	if document := inBrowser(t, page); strings.Contains(document, `id="tools" hidden`) ||
		!strings.Contains(document, `id="tools"`) {
		t.Errorf("the page's script has not run:\n%.3000s", document)
	}
	const changes = `<script>document.title = "changed"</script>`
	if document := inBrowser(t,
		strings.Replace(page, "</body>", changes+"</body>", 1)); strings.Contains(document, "<title>changed") {
		t.Error("another script has run")
	}

	// Without the policy, the test's own script can use the page as a person does.
	const uses = `<script>
const shown = () => rows.filter((row) => row.getClientRects().length > 0).map((row) => (row.querySelector("h3, th, summary") ?? row).textContent.trim().split(/\s+/)[0]).join(" ");
const scheme = () => getComputedStyle(document.body).backgroundColor;
const said = ["all " + shown()];
filter.value = "WORKER-2";
filter.dispatchEvent(new Event("input"));
said.push("some " + shown());
filter.value = "";
filter.dispatchEvent(new Event("input"));
const before = scheme();
document.getElementById("theme").click();
const after = scheme();
document.getElementById("theme").click();
said.push(before === after || scheme() !== before ? "one look" : "two looks");
said.push(document.documentElement.scrollWidth > innerWidth ? "too wide" : "fits");
document.title = said.join("; ");
</script>`
	at := strings.Index(page, `<meta http-equiv="Content-Security-Policy"`)
	end := at + strings.Index(page[at:], ">") + 1
	open := strings.Replace(page[:at]+page[end:], "</body>", uses+"</body>", 1)
	document := inBrowser(t, open, "--window-size=1280,900")
	title, _, _ := strings.Cut(document[strings.Index(document, "<title>")+len("<title>"):], "</title>")
	want := "all gpu1 gpu2 mnist-worker-0 mnist-worker-1 last mnist-worker-2 mnist/worker a b c; some mnist-worker-2; two looks; fits"
	if title != want {
		t.Errorf("the page did\n%s\nwant\n%s", title, want)
	}
}

// pictures is the folder to write the documentation's screenshots to: TRAINYARD_PICTURES.
const pictures = "TRAINYARD_PICTURES"

// TestPictures takes screenshots of the page, in light and dark, if a folder for them is given. The guide shows the
// light one, report.png.
func TestPictures(t *testing.T) {
	folder := os.Getenv(pictures)
	if folder == "" {
		t.Skipf("%s names no folder for screenshots", pictures)
	}
	page := written(t, lab(3))
	for name, flag := range map[string]string{
		"light": "--blink-settings=preferredColorScheme=1", "dark": "--blink-settings=preferredColorScheme=0",
	} {
		inBrowser(t, page, flag, "--window-size=1280,1500", "--hide-scrollbars",
			fmt.Sprintf("--screenshot=%s", filepath.Join(folder, "report-"+name+".png")))
	}
}
