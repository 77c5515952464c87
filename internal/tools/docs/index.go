package main

import (
	"fmt"
	"path"
	"slices"
)

// unlinkedGuides reports guides that the index does not link.
func unlinkedGuides(root string) (wrong []string, err error) {
	guides, err := tracked(root, "docs/guides/*.md")
	if err != nil {
		return nil, err
	}
	pages := pages{root: root, known: map[string]page{}}
	index, err := pages.read("docs/index.md")
	if err != nil {
		return nil, err
	}
	for _, guide := range guides {
		if link := "guides/" + path.Base(guide); !slices.Contains(index.links, link) {
			wrong = append(wrong, fmt.Sprintf("docs/index.md: no link to %s", link))
		}
	}
	return wrong, nil
}
