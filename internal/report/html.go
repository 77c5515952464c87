package report

import (
	"crypto/sha256"
	_ "embed" // the template, style sheet and script
	"encoding/base64"
	"html/template"
	"io"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

//go:embed page.html
var markup string

//go:embed page.css
var style string

//go:embed page.js
var script string

// sheet is the template with style sheet and script inlined. Its content security policy allows these two and nothing
// else, whatever a member's name or log contains.
var sheet = template.Must(template.New("page").Parse(strings.NewReplacer(
	"/*style*/", style, "/*script*/", script, "STYLE-DIGEST", digest(style), "SCRIPT-DIGEST", digest(script),
).Replace(markup)))

// digest returns the hash that allows an inline element in a content security policy.
func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// write writes a page as HTML.
func write(to io.Writer, p page) error {
	var text strings.Builder
	if err := sheet.Execute(&text, p); err != nil {
		return err
	}
	_, err := io.WriteString(to, printable.Text(text.String()))
	return err
}
