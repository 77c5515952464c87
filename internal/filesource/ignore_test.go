package filesource

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write writes files of a folder; a name with a trailing slash is an empty folder.
func write(t testing.TB, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
}

// names returns the files that are read from a folder.
func names(t testing.TB, source Source) (names []string) {
	t.Helper()
	content, err := source.Read(t.Context())
	must(t, err)
	for _, file := range content.Tree {
		names = append(names, file.Path)
	}
	return names
}

// byGit returns the files that git would add.
func byGit(t testing.TB, root string) (names []string) {
	t.Helper()
	git := func(args ...string) string {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir, command.Env = root,
			append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		output, err := command.Output()
		must(t, err)
		return string(output)
	}
	git("init", "--quiet")
	for name := range strings.SplitSeq(git("ls-files", "-z", "--others", "--exclude-standard"), "\x00") {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// within are files for patterns to match.
var within = map[string]string{
	"a.py": "", "a.log": "", "b/a.py": "", "b/a.log": "", "b/c/a.py": "", "b/c/a.log": "", "b/c/d/e": "",
	"build/a.py": "", "c/b/a.py": "", "x y": "", "x ": "", "#a": "",
	"!a": "", "{a}": "", "a,b": "", ".hidden/a": "", "kept": "",
}

// TestIgnoredAsByGit: the same files are ignored as in git.
func TestIgnoredAsByGit(t *testing.T) {
	for name, lists := range map[string]map[string]string{
		"nothing":              {},
		"a name":               {".gitignore": "a.log\n"},
		"a pattern":            {".gitignore": "*.log\n# *.py\n\n"},
		"brought back":         {".gitignore": "*.log\n!b/a.log\n"},
		"the last one counts":  {".gitignore": "!a.log\n*.log\n"},
		"folders":              {".gitignore": "b/\na.py/\n"},
		"a folder and what is": {".gitignore": "b/\n!b/a.py\n"},
		"anchored":             {".gitignore": "/a.py\n/b/c\n"},
		"with a slash within":  {".gitignore": "b/a.py\nc/a.py\n"},
		"any folders":          {".gitignore": "**/c/a.py\nb/**/e\n"},
		"all in a folder":      {".gitignore": "b/**\n"},
		"all but one":          {".gitignore": "/*\n!/b/\n!/.gitignore\n"},
		"all but one, deeper":  {".gitignore": "b/*\n!b/c\nb/c/*\n!b/c/a.py\n"},
		"everything within":    {".gitignore": "**/b/**\n"},
		"nested": {
			".gitignore": "*.log\n", "b/.gitignore": "/a.py\n!a.log\n", "b/c/.gitignore": "*\n!.gitignore\n",
		},
		"nested, anchored":       {"b/.gitignore": "/c/a.py\nc/a.log\n"},
		"classes":                {".gitignore": "[ab].py\n[!a].log\n[a-c]/\n"},
		"question marks":         {".gitignore": "?.py\n"},
		"escapes":                {".gitignore": "\\#a\n\\!a\nx\\ \n"},
		"spaces":                 {".gitignore": "a.py   \nx y\n"},
		"braces":                 {".gitignore": "{a}\n{a,b}\n*.{py,log}\n"},
		"line ends of others":    {".gitignore": "a.py\r\n*.log\r\n"},
		"a byte order mark":      {".gitignore": "\ufeffa.py\n"},
		"stars":                  {".gitignore": "**.py\nb**\n"},
		"slashes alone":          {".gitignore": "/\n!\n//\n"},
		"malformed":              {".gitignore": "[a\na.log\n\\\n"},
		"a folder of that name":  {".gitignore/a": "*"},
		"hidden":                 {".gitignore": ".*\n"},
		"an ignored list":        {".gitignore": ".gitignore\na.py\n"},
		"as in a Python project": {".gitignore": "__pycache__/\n*.py[cod]\n.venv/\n/dist/\n*.egg-info/\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, within)
			write(t, root, lists)
			if diff := cmp.Diff(byGit(t, root), names(t, Source{Path: root})); diff != "" {
				t.Errorf("-git +ours:\n%s", diff)
			}
		})
	}
}

// TestIgnoredAsByGitProperty checks the same with patterns made of random parts.
func TestIgnoredAsByGitProperty(t *testing.T) {
	part := rapid.SampledFrom([]string{
		"a.py", "a.log", "b", "c", "d", "*", "**", "*.py", "a.*", "?", "[a-c]", "e", ".hidden",
	})
	line := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "", "!"}).Draw(t,
			"negated") + rapid.SampledFrom([]string{"", "", "/"}).Draw(t, "anchor") +
			strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "parts"),
				"/") + rapid.SampledFrom([]string{"", "", "/"}).Draw(t, "folders")
	})
	list := rapid.Map(rapid.SliceOfN(line, 0, 4),
		func(lines []string) string { return strings.Join(lines, "\n") + "\n" })
	rapid.Check(t, func(rt *rapid.T) {
		root := t.TempDir()
		lists := map[string]string{".gitignore": list.Draw(rt, "list")}
		if rapid.Bool().Draw(rt, "nested") {
			lists["b/.gitignore"] = list.Draw(rt, "nested list")
		}
		write(t, root, within)
		write(t, root, lists)
		want := byGit(t, root)
		content, err := Source{Path: root}.Read(t.Context())
		if err != nil && len(want) > 0 {
			rt.Fatal(err)
		}
		var got []string
		for _, file := range content.Tree {
			got = append(got, file.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%q (-git +ours):\n%s", lists, diff)
		}
	})
}

// Excludes take precedence over ignore files, and are all that applies to an archive.
func TestExcludes(t *testing.T) {
	root := t.TempDir()
	write(t, root,
		map[string]string{"a.py": "", "a.log": "", "b/a.py": "", "b/.gitignore": "!a.py\n", ".gitignore": "*.log\n"})
	for name, test := range map[string]struct {
		excludes []string
		want     []string
	}{
		"none":         {nil, []string{".gitignore", "a.py", "b/.gitignore", "b/a.py"}},
		"more":         {[]string{"a.py", ".gitignore"}, nil},
		"brought back": {[]string{"*", "!a.log"}, []string{"a.log"}},
		"a folder":     {[]string{"/b/"}, []string{".gitignore", "a.py"}},
	} {
		content, err := Source{Path: root, Excludes: test.excludes}.Read(t.Context())
		var got []string
		for _, file := range content.Tree {
			got = append(got, file.Path)
		}
		if (err != nil) != (test.want == nil) || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, test.want)
		}
	}
}
