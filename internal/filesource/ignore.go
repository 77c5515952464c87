package filesource

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	gitFolder  = ".git"
	ignoreFile = ".gitignore"
)

// rules say what to ignore, as in gitignore(5): the last matching pattern counts. The contents of an ignored folder are
// ignored as well, and never matched.
type rules struct {
	listed, excludes []pattern
}

// pattern is one line of an ignore file.
type pattern struct {
	// dir is the folder of the ignore file.
	dir, glob         string
	negated, onlyDirs bool
}

func newRules(excludes []string) rules { return rules{excludes: parsePatterns(".", excludes)} }

// in returns the rules within a folder, which may have its own ignore file.
func (r rules) in(root, dir string) (rules, error) {
	list := filepath.Join(root, dir, ignoreFile)
	info, err := os.Lstat(list)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() { // git follows no link either
		return r, nil
	}
	if err != nil {
		return r, err
	}
	content, err := os.ReadFile(list)
	if err != nil {
		return r, err
	}
	patterns := parsePatterns(dir, strings.Split(strings.TrimPrefix(string(content), "\ufeff"), "\n"))
	return rules{slices.Concat(r.listed, patterns), r.excludes}, nil
}

// matches reports whether a file or folder is ignored. Excludes take precedence over ignore files.
func (r rules) matches(name string, isDir bool) bool {
	for _, patterns := range [][]pattern{r.excludes, r.listed} {
		for _, p := range slices.Backward(patterns) {
			if p.matches(name, isDir) {
				return !p.negated
			}
		}
	}
	return false
}

// matchesWithin reports whether a file, or a folder that it is in, is ignored.
func (r rules) matchesWithin(name string) bool {
	for at := path.Dir(name); at != "." && at != "/"; at = path.Dir(at) {
		if r.matches(at, true) {
			return true
		}
	}
	return r.matches(name, false)
}

func (p pattern) matches(name string, isDir bool) bool {
	if p.onlyDirs && !isDir {
		return false
	}
	if p.dir != "." {
		within, below := strings.CutPrefix(name, p.dir+"/")
		if !below {
			return false
		}
		name = within
	}
	return doublestar.MatchUnvalidated(p.glob, name)
}

func parsePatterns(dir string, lines []string) (patterns []pattern) {
	for _, line := range lines {
		p := pattern{dir: dir}
		line = trimSpaces(strings.TrimSuffix(line, "\r"))
		if strings.HasPrefix(line, "#") {
			continue
		}
		line, p.negated = strings.CutPrefix(line, "!")
		line, p.onlyDirs = strings.CutSuffix(line, "/")
		if line == "" {
			continue
		}
		p.glob = globOf(line)
		if !doublestar.ValidatePattern(p.glob) {
			continue // as in git, it matches nothing
		}
		patterns = append(patterns, p)
	}
	return patterns
}

// trimSpaces removes trailing spaces, except one after a backslash.
func trimSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	if len(trimmed) < len(line) && escaped(trimmed) {
		trimmed += " "
	}
	return trimmed
}

// escaped reports whether a text ends with a backslash that escapes the next character.
func escaped(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

// globOf returns a pattern in the syntax of doublestar: anchored, with braces escaped, which are literal in git, and
// with /* after a final /**, which matches the contents of a folder but not the folder.
func globOf(line string) string {
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	var glob strings.Builder
	for i := range len(line) {
		if (line[i] == '{' || line[i] == '}') && !escaped(line[:i]) {
			glob.WriteByte('\\')
		}
		glob.WriteByte(line[i])
	}
	switch text := glob.String(); {
	case !anchored:
		return "**/" + text
	case strings.HasSuffix(text, "/**"):
		return text + "/*"
	default:
		return text
	}
}
