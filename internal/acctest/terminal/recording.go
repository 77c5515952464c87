//go:build linux

package terminal

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gdamore/tcell/v3/color"
	"github.com/gdamore/tcell/v3/vt"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// Pictures is the environment variable with the folder to write the documentation's pictures to. The tests that draw
// them are skipped without it.
const Pictures = "TRAINYARD_PICTURES"

// Recording is what a terminal showed.
type Recording struct {
	terminal *Terminal
	shots    []shot
}

// shot is the screen at one moment: its rows, as SVG, and whether to leave time to read it.
type shot struct {
	rows []string
	at   time.Time
	read bool
}

// The picture's measures, in pixels.
const (
	cellWidth, cellHeight = 8.4, 19
	margin, baseline      = 16, 14
	blockInset            = 3 // above and below the blocks of bars
)

// How long a shot stays: the time until the next one within bounds, or the upper bound if it is to be read.
const shortest, longest = 400 * time.Millisecond, 2500 * time.Millisecond

// Record begins a recording.
func (t *Terminal) Record() *Recording { return &Recording{terminal: t} }

// Watch records until a row has these texts in this order, which the viewer then has time to read.
func (r *Recording) Watch(texts ...string) {
	r.terminal.Helper()
	acctest.Eventually(r.terminal, "a row with "+strings.Join(texts, ", "), func() bool {
		r.shoot()
		return r.terminal.Shows(texts...)
	})
	r.shoot()
	r.shots[len(r.shots)-1].read = true
}

// shoot adds the screen, unless it is as in the last shot.
func (r *Recording) shoot() {
	s := shot{rows: r.terminal.drawn(), at: time.Now()}
	if len(r.shots) == 0 || !slices.Equal(r.shots[len(r.shots)-1].rows, s.rows) {
		r.shots = append(r.shots, s)
	}
}

// Crop leaves out the rows above the first one that has this text in one style, and empty rows at the end.
func (r *Recording) Crop(text string) {
	r.terminal.Helper()
	for i, s := range r.shots {
		first := slices.IndexFunc(s.rows,
			func(row string) bool { return strings.Contains(row, html.EscapeString(text)) })
		if first < 0 {
			r.terminal.Fatalf("no row has %q", text)
		}
		last := len(s.rows)
		for s.rows[last-1] == "" {
			last--
		}
		r.shots[i].rows = s.rows[first:last]
	}
}

// drawn returns the rows of the screen as SVG.
func (t *Terminal) drawn() []string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	rows := make([]string, t.height)
	for y := range rows {
		var b strings.Builder
		for x := 0; x < t.width; {
			first, class := x, t.class(x, y)
			var text strings.Builder
			for ; x < t.width && t.class(x, y) == class; x++ {
				text.WriteString(cmp.Or(t.cell(x, y).C, " "))
			}
			b.WriteString(element(first, text.String(), class))
		}
		rows[y] = b.String()
	}
	return rows
}

func (t *Terminal) cell(x, y int) vt.Cell {
	return t.emulator.GetCell(vt.Coord{X: vt.Col(x), Y: vt.Row(y)})
}

// The classes of blocks, of which bars consist.
const filled, rest = "filled", "rest"

// classes are those of colours.
var classes = map[color.Color]string{
	color.Green: "green", color.Olive: "yellow", color.Maroon: "red", color.Teal: "cyan",
}

// class returns the class of a character.
func (t *Terminal) class(x, y int) string {
	cell := t.cell(x, y)
	switch {
	case cell.S == nil:
		return ""
	case cell.C == "█":
		return filled + " " + classes[cell.S.Fg()]
	case cell.C == "░":
		return rest
	}
	class := classes[cell.S.Fg()]
	switch {
	case cell.S.Attr()&vt.Bold != 0:
		class += " bold"
	case cell.S.Attr()&vt.Dim != 0:
		class += " dim"
	}
	return strings.TrimSpace(class)
}

// element returns characters from column x on as SVG. The length of a text is given, as fonts differ.
func element(x int, characters, class string) string {
	left := float64(x) * cellWidth
	if class == rest || strings.HasPrefix(class, filled) {
		return fmt.Sprintf(`<rect class=%q x="%.1f" y="%d" width="%.1f" height="%d"/>`,
			class, left, blockInset, float64(utf8.RuneCountInString(characters))*cellWidth, cellHeight-2*blockInset)
	}
	shown := strings.TrimLeft(characters, " ")
	left += float64(len(characters)-len(shown)) * cellWidth
	if shown = strings.TrimRight(shown, " "); shown == "" {
		return ""
	}
	if class != "" {
		class = fmt.Sprintf(" class=%q", class)
	}
	return fmt.Sprintf(`<text%s x="%.1f" y="%d" textLength="%.1f">%s</text>`,
		class, left, baseline, float64(utf8.RuneCountInString(shown))*cellWidth, html.EscapeString(shown))
}

// SVG returns the recording as a picture, which is animated if it has several shots. Rows that shots share are in it
// once.
func (r *Recording) SVG(title string) string {
	starts := make([]time.Duration, len(r.shots)+1)
	for i, s := range r.shots {
		stays := longest
		if !s.read && i+1 < len(r.shots) {
			stays = min(max(r.shots[i+1].at.Sub(s.at), shortest), longest)
		}
		starts[i+1] = starts[i] + stays
	}
	total := starts[len(r.shots)]
	known := map[string]string{}
	var rows, style, screens strings.Builder
	height := 0
	for i, s := range r.shots {
		height = max(height, len(s.rows)*cellHeight)
		fmt.Fprintf(&screens, "<g id=\"s%d\" class=\"screen\">", i)
		for y, row := range s.rows {
			if row == "" {
				continue
			}
			if known[row] == "" {
				known[row] = fmt.Sprintf("r%d", len(known))
				fmt.Fprintf(&rows, "<g id=%q>%s</g>\n", known[row], row)
			}
			fmt.Fprintf(&screens, "<use href=\"#%s\" y=\"%d\"/>", known[row], y*cellHeight)
		}
		screens.WriteString("</g>\n")
		if len(r.shots) > 1 {
			share := func(at time.Duration) float64 { return 100 * at.Seconds() / total.Seconds() }
			fmt.Fprintf(&style, animation, i, total.Seconds(), share(starts[i]), share(starts[i+1]))
		}
	}
	return fmt.Sprintf(picture, float64(r.terminal.width)*cellWidth+2*margin, height+2*margin,
		html.EscapeString(title), style.String(), rows.String(), margin, screens.String())
}

// animation shows a screen, given by its number, from one percentage of the total number of seconds until another.
const animation = `#s%[1]d { animation: s%[1]d %.1[2]fs step-end infinite }
@keyframes s%[1]d { 0%% { visibility: hidden } %.2[3]f%% { visibility: visible } %.2[4]f%% { visibility: hidden } }
`

// picture is an SVG of this width and height, with a title, animations, rows, a margin, and screens. Viewers who prefer
// reduced motion see the first screen.
const picture = `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]g" height="%[2]d" viewBox="0 0 %[1]g %[2]d" role="img" aria-labelledby="title">
<title id="title">%[3]s</title>
<style>
.window { fill: #0d1117; stroke: #30363d }
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace; white-space: pre }
text, .filled { fill: #e6edf3 }
.bold { font-weight: 700 }
text.dim { fill: #9198a1 }
.rest { fill: #2b3138 }
text.green, .filled.green { fill: #3fb950 }
text.yellow, .filled.yellow { fill: #d29922 }
text.red, .filled.red { fill: #ff7b72 }
text.cyan { fill: #56d4dd }
.screen { visibility: hidden }
#s0 { visibility: visible }
%[4]s@media (prefers-reduced-motion: reduce) { .screen { animation: none !important } }
</style>
<defs>
%[5]s</defs>
<rect class="window" x="0.5" y="0.5" width="99.9%%" height="99.8%%" rx="8"/>
<g transform="translate(%[6]d %[6]d)">
%[7]s</g>
</svg>
`
