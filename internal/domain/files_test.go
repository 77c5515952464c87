package domain

import (
	"strings"
	"testing"
)

// TestFileTreeDigest checks that digests never change, as paths on hosts contain them, and differ for every difference
// that matters.
func TestFileTreeDigest(t *testing.T) {
	tree := FileTree{
		{Path: "run.sh", Executable: true, Size: 3, SHA256: "aa"}, {Path: "train.py", Size: 1, SHA256: "bb"},
	}
	const want = "sha256:40f0b05d914b7ef20325f8df967a34e90eb76fabcb03d07a397adce74bde9321"
	if got := tree.Digest(); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
	seen := map[string]int{}
	for i, other := range []FileTree{
		tree, {}, tree[:1],
		{{Path: "run.sh", SHA256: "aa"}, tree[1]}, {{Path: "run", Executable: true, SHA256: "aa"}, tree[1]},
		{{Path: "run.sh", Executable: true, SHA256: "ab"}, tree[1]}, {{Path: "run.sh", Link: "aa"}, tree[1]},
	} {
		digest := other.Digest()
		if before, found := seen[digest]; found {
			t.Errorf("trees %d and %d have the same digest", before, i)
		}
		seen[digest] = i
	}
}

func TestFileTreeCheck(t *testing.T) {
	file := func(paths ...string) (tree FileTree) {
		for _, path := range paths {
			tree = append(tree, TreeFile{Path: path, SHA256: "aa"})
		}
		return tree
	}
	link := func(path, target string, others ...TreeFile) FileTree {
		tree := append(FileTree{{Path: path, Link: target}}, others...)
		tree.Sort()
		return tree
	}
	for name, test := range map[string]struct {
		tree FileTree
		says string // empty for a valid tree
	}{
		"files":                {file("a", "b/c", "b/d"), ""},
		"nothing":              {nil, "no files"},
		"twice":                {file("a", "a"), `"a" is duplicated`},
		"out of order":         {file("b", "a"), "out of order"},
		"file and folder":      {file("a", "a/b"), `"a" is both a file and a folder`},
		"absolute":             {file("/etc/passwd"), "absolute path"},
		"out of it":            {file("../a"), "points outside the source"},
		"not clean":            {file("a//b"), "not a valid file path"},
		"the parent":           {file(".."), "points outside the source"},
		"the folder itself":    {file("."), "not a valid file path"},
		"not UTF-8":            {file("a\xff"), "valid UTF-8"},
		"a zero":               {file("a\x00b"), "valid UTF-8"},
		"a long name":          {file(strings.Repeat("a", 256)), "256 bytes; at most 255"},
		"a long path":          {file(strings.Repeat("a/", 600) + "a"), "1201 bytes; at most 1024"},
		"too many":             {make(FileTree, MaxTreeFiles+1), "not a valid file path"},
		"too large":            {FileTree{{Path: "a", Size: MaxTreeBytes + 1<<30}}, "5.0 GiB; at most 4 GiB"},
		"a link":               {link("l", "b/c", file("b/c")...), ""},
		"a link up":            {link("b/l", "../a", file("a")...), ""},
		"a link to nothing":    {link("l", "data"), ""},
		"a link to the folder": {link("b/l", ".."), ""},
		"an absolute link":     {link("l", "/etc/passwd"), `"l" points outside the source, to "/etc/passwd"`},
		"a link out of it":     {link("b/l", "../../a"), "points outside the source"},
		"there and back":       {link("l", "../lab/a"), "points outside the source"},
		"a link through a link": {
			link("l", "m/c", TreeFile{Path: "b/c", SHA256: "a"}, TreeFile{Path: "m", Link: "b"}), "",
		},
		"out of it through a link": {
			link("x", "a/b/up/../foo", TreeFile{Path: "a/b/up", Link: "../.."}), `"x" points outside the source`,
		},
		"in a circle":                  {link("a", "b", TreeFile{Path: "b", Link: "a"}), "part of a loop"},
		"a file below a link":          {link("l", "b", file("b/c", "l/d")...), `"l" is both a file and a folder`},
		"a link target of no encoding": {link("l", "\xff"), "valid UTF-8"},
	} {
		err := test.tree.Check()
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
}

func TestFilesValidate(t *testing.T) {
	for name, test := range map[string]struct {
		files Files
		path  string
	}{
		"good":             {Files{Name: "code", Source: ".", Excludes: []string{"*.ckpt"}}, ""},
		"a bad name":       {Files{Name: "Code", Source: "."}, "name"},
		"no source":        {Files{Name: "code"}, "source"},
		"an empty pattern": {Files{Name: "code", Source: ".", Excludes: []string{"a", " "}}, "excludes[1]"},
	} {
		problems := test.files.Validate()
		if test.path == "" && len(problems) > 0 ||
			test.path != "" && (len(problems) != 1 || problems[0].Path.String() != test.path) {
			t.Errorf("%s: got %v, want one at %q", name, problems, test.path)
		}
	}
}
