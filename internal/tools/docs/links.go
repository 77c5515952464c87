package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// own are the URL prefixes of this repository's files.
var own = []string{
	"https://github.com/trainyard/terraform-provider-trainyard/tree/main/",
	"https://github.com/trainyard/terraform-provider-trainyard/blob/main/",
}

// deadLinks reports relative links, and those to the repository's own address, to a file or heading that does not
// exist.
func deadLinks(root string) (wrong []string, err error) {
	files, err := tracked(root, "*.md")
	if err != nil {
		return nil, err
	}
	pages := pages{root: root, known: map[string]page{}}
	for _, file := range files {
		if strings.HasPrefix(file, "templates/") || strings.HasPrefix(file, "internal/provider/") {
			continue // checked as part of docs/, which is generated from them
		}
		p, err := pages.read(file)
		if err != nil {
			return nil, err
		}
		for _, link := range p.links {
			if err := pages.follow(file, link); err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %s: %v", file, link, err))
			}
		}
	}
	return wrong, nil
}

// page holds the links of a file, and the anchors of its headings.
type page struct{ links, anchors []string }

// pages are the files read so far, by path below the root.
type pages struct {
	root  string
	known map[string]page
}

func (p *pages) read(file string) (page, error) {
	if found, known := p.known[file]; known {
		return found, nil
	}
	content, err := os.ReadFile(path.Join(p.root, file))
	if err != nil {
		return page{}, err
	}
	found := parse(content)
	p.known[file] = found
	return found, nil
}

func parse(content []byte) (found page) {
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(content))
	taken := map[string]int{}
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Link:
			found.links = append(found.links, string(n.Destination))
		case *ast.Image:
			found.links = append(found.links, string(n.Destination))
		case *ast.Heading:
			name := anchor(words(n, content))
			if again := taken[name]; again > 0 {
				found.anchors = append(found.anchors, fmt.Sprintf("%s-%d", name, again))
			} else {
				found.anchors = append(found.anchors, name)
			}
			taken[name]++
		}
		return ast.WalkContinue, nil
	})
	// The provider's documentation marks nested schemas with HTML anchors.
	for _, line := range bytes.Split(content, []byte("\n")) {
		if _, name, is := bytes.Cut(line, []byte(`<a id="`)); is {
			id, _, _ := bytes.Cut(name, []byte(`"`))
			found.anchors = append(found.anchors, string(id))
		}
	}
	return found
}

// words returns the text of a heading.
func words(node ast.Node, content []byte) string {
	var b strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		if t, is := child.(*ast.Text); is {
			b.Write(t.Segment.Value(content))
		} else {
			b.WriteString(words(child, content))
		}
	}
	return b.String()
}

// anchor returns the anchor that GitHub gives a heading.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127 && unicode.IsLetter(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// follow returns an error if a link of a file leads nowhere.
func (p *pages) follow(file, link string) error {
	inside := strings.TrimSpace(link)
	from := path.Dir(file)
	for _, address := range own {
		if rest, is := strings.CutPrefix(inside, address); is {
			inside, from = rest, "."
		}
	}
	target, err := url.Parse(inside)
	if err != nil {
		return err
	}
	if target.IsAbs() || strings.HasPrefix(inside, "//") {
		return nil
	}
	leads := file
	if target.Path != "" {
		leads = path.Join(from, target.Path)
	}
	info, err := os.Stat(path.Join(p.root, leads))
	switch {
	case err != nil:
		return errors.New("there is no such file")
	case target.Fragment == "" || strings.HasPrefix(target.Fragment, "L"):
		return nil
	case info.IsDir():
		leads = path.Join(leads, "README.md")
	}
	there, err := p.read(leads)
	if err != nil {
		return err
	}
	if !slices.Contains(there.anchors, target.Fragment) {
		return fmt.Errorf("%s has no such heading", leads)
	}
	return nil
}
