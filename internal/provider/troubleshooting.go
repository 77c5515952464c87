package provider

import (
	"regexp"
	"strings"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/docs"
)

// released matches the version of a release, as opposed to that of a development build.
var released = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// troubleshooting returns the address of the guide in the registry, for a provider of this version.
func troubleshooting(version string) string {
	if !released.MatchString(version) {
		version = "latest"
	}
	return "https://registry.terraform.io/providers/trainyard/trainyard/" + version + "/docs/guides/troubleshooting"
}

// entry is a section of the troubleshooting guide: the parts of the message that its heading quotes, in order, and its
// anchor.
type entry struct {
	parts  []string
	anchor string
}

// quotedHeading is a heading that consists of a message. An ellipsis stands for what varies.
var quotedHeading = regexp.MustCompile("(?m)^### `([^`]+)`$")

// entries are the sections that messages link to.
var entries = sync.OnceValue(func() (found []entry) {
	for _, heading := range quotedHeading.FindAllStringSubmatch(docs.Troubleshooting, -1) {
		e := entry{anchor: anchor(heading[1])}
		for part := range strings.SplitSeq(heading[1], "…") {
			if part = strings.TrimSpace(part); part != "" {
				e.parts = append(e.parts, part)
			}
		}
		found = append(found, e)
	}
	return found
})

// matched returns how many characters of a message the entry quotes; 0 if it quotes another message.
func (e entry) matched(message string) (length int) {
	for _, part := range e.parts {
		_, rest, found := strings.Cut(message, part)
		if !found {
			return 0
		}
		message = rest
		length += len(part)
	}
	return length
}

// linked returns the detail of a diagnostic with a link to the section of the guide at this address that quotes most of
// it, if any does.
func linked(guide, summary, detail string) string {
	best, most := "", 0
	for _, e := range entries() {
		if length := e.matched(summary + "\n" + detail); length > most {
			best, most = e.anchor, length
		}
	}
	if best == "" {
		return detail
	}
	return strings.TrimSpace(detail + "\n\nSee " + guide + "#" + best)
}

// anchor returns the anchor that the registry gives a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(heading))
}
