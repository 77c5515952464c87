package top

import "github.com/trainyard/terraform-provider-trainyard/internal/overview"

// notes shows what is wrong, and why values are unknown.
func notes(r overview.Reading, width int) []line {
	sentences := r.Notes()
	if len(sentences) == 0 {
		return nil
	}
	lines := []line{text("NOTES", faint)}
	if width > 0 {
		width = max(width-len(indent), 1)
	}
	for _, sentence := range sentences {
		for i, l := range wrapped(sentence, width) {
			if i > 0 {
				l = indent + l
			}
			lines = append(lines, text(l, plain))
		}
	}
	return lines
}

// indent begins continuation lines.
const indent = "  "
