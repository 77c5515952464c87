package autoscale

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Chart is a picture of curves, in panels of equal size with a common legend. The same chart always gives the same
// text.
type Chart struct {
	Title string
	// X and Y name the axes, with their units.
	X, Y string
	// Ticks are the values marked on the x-axis. The axis ends at the last one and is scaled by the square root, to
	// spread small values. Without ticks, each panel has a linear axis as long as its curves.
	Ticks  []float64
	Panels []Panel
}

// Panel is one plot of a chart. Its y-axis ends at Top, or at its curves' maximum if that is 0; what exceeds the axes
// is cut off.
type Panel struct {
	Title  string
	Top    float64
	Curves []Curve
}

// Curve is a line through points, each of which is marked. Curves with the same name look the same in all panels, and
// share a legend entry.
type Curve struct {
	Name, Colour string
	// Dashes is an SVG dash pattern; "" for none.
	Dashes string
	Points []ChartPoint
}

// ChartPoint is a point of a curve, in the units of the axes, which begin at 0.
type ChartPoint struct{ X, Y float64 }

const (
	// The margins of a panel's plot, for its labels.
	chartLeft, chartRight, chartTop, chartBottom = 62.0, 14.0, 46.0, 46.0
	// panelRatio is a panel's height divided by its width. legendColumn and legendRow are the distances between legend
	// entries.
	panelRatio, legendColumn, legendRow = 0.62, 240.0, 20.0
)

// SVG returns the chart as a picture. Its own colours are visible on light and dark backgrounds; the curves' are the
// caller's.
func (c Chart) SVG() string {
	columns := max(1, min(len(c.Panels), 3))
	if len(c.Panels) == 4 {
		columns = 2
	}
	rows := (len(c.Panels) + columns - 1) / columns
	width := float64(pictureWidth) / float64(columns)
	height := width * panelRatio
	legend := c.legend()
	head := 30 + legendRow*math.Ceil(float64(len(legend))*legendColumn/pictureWidth) + 8

	var p picture
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %s" role="img" font-family="sans-serif" font-size="12" fill="none">`,
		pictureWidth, coordinate(head+height*float64(rows)))
	p.add("<title>%s</title>", escapedXML(c.Title))
	p.bold(chartLeft, 18, c.Title)
	for i, curve := range legend {
		place := float64(i) * legendColumn
		x, y := 16+math.Mod(place, pictureWidth), 38+legendRow*math.Floor(place/pictureWidth)
		p.curve(curve, []ChartPoint{{x, y}, {x + 14, y}, {x + 28, y}})
		p.text(x+36, y+4, "start", curve.Name)
	}
	for i, panel := range c.Panels {
		p.add(`<g transform="translate(%s %s)">`, coordinate(width*float64(i%columns)),
			coordinate(head+height*float64(i/columns)))
		c.panel(&p, panel, width, height)
		p.add("</g>")
	}
	p.add("</svg>")
	return p.String()
}

// legend returns one curve per name, in order.
func (c Chart) legend() []Curve {
	var legend []Curve
	named := map[string]bool{}
	for _, panel := range c.Panels {
		for _, curve := range panel.Curves {
			if !named[curve.Name] {
				named[curve.Name] = true
				legend = append(legend, curve)
			}
		}
	}
	return legend
}

// panel draws a panel with its upper left corner at the origin.
func (c Chart) panel(p *picture, panel Panel, width, height float64) {
	wide, high := width-chartLeft-chartRight, height-chartTop-chartBottom
	right, top := 0.0, panel.Top
	for _, curve := range panel.Curves {
		for _, point := range curve.finite() {
			right = max(right, point.X)
			if panel.Top == 0 {
				top = max(top, point.Y)
			}
		}
	}
	along := func(v, end float64) float64 { return v / end }
	ticks := c.Ticks
	if len(ticks) > 0 {
		right = ticks[len(ticks)-1]
		along = func(v, end float64) float64 { return math.Sqrt(v / end) }
	} else {
		var step float64
		step, right = axisTo(right)
		ticks = multiples(step, right)
	}
	step, top := axisTo(top)
	x := func(v float64) float64 { return wide * along(max(v, 0), right) }
	y := func(v float64) float64 { return high * (1 - max(v, 0)/top) }

	p.bold(chartLeft, 14, panel.Title)
	p.text(chartLeft, chartTop-10, "start", c.Y)
	p.text(chartLeft+wide/2, height-10, "middle", c.X)
	for _, tick := range multiples(step, top) {
		p.rule(chartLeft, chartTop+y(tick), chartLeft+wide, chartTop+y(tick))
		p.text(chartLeft-8, chartTop+y(tick)+4, "end", tickLabel(tick))
	}
	for _, tick := range ticks {
		p.rule(chartLeft+x(tick), chartTop, chartLeft+x(tick), chartTop+high)
		p.text(chartLeft+x(tick), chartTop+high+16, "middle", tickLabel(tick))
	}
	// A nested picture clips what exceeds its edges. Points on the axes must remain fully visible.
	const edge = 4
	p.add(`<svg x="%s" y="%s" width="%s" height="%s">`, coordinate(chartLeft-edge), coordinate(chartTop-edge),
		coordinate(wide+2*edge), coordinate(high+2*edge))
	for _, curve := range panel.Curves {
		var points []ChartPoint
		for _, point := range curve.finite() {
			points = append(points, ChartPoint{edge + min(x(point.X), 10*wide), edge + max(y(point.Y), -10*high)})
		}
		p.curve(curve, points)
	}
	p.add("</svg>")
}

// finite returns the points that can be drawn.
func (c Curve) finite() []ChartPoint {
	return slices.DeleteFunc(slices.Clone(c.Points),
		func(p ChartPoint) bool { return math.IsNaN(p.X+p.Y) || math.IsInf(p.X+p.Y, 0) })
}

// multiples returns the multiples of step from 0 to end.
func multiples(step, end float64) []float64 {
	var all []float64
	for i := 0; float64(i)*step <= end*(1+1e-9); i++ {
		all = append(all, float64(i)*step)
	}
	return all
}

// curve draws a curve through points of the picture.
func (p *picture) curve(curve Curve, points []ChartPoint) {
	if len(points) == 0 {
		return
	}
	var line, dots strings.Builder
	colour := cmp.Or(curve.Colour, textColour)
	for i, point := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&line, "%s%s %s", command, coordinate(point.X), coordinate(point.Y))
		fmt.Fprintf(&dots, "M%s %sh0", coordinate(point.X), coordinate(point.Y))
	}
	p.add(`<path class="line" d="%s" stroke="%s" stroke-width="1.5" stroke-dasharray="%s"/>`, line.String(), colour,
		dashesOf(curve.Dashes))
	p.add(`<path class="points" d="%s" stroke="%s" stroke-width="5" stroke-linecap="round"/>`, dots.String(), colour)
}

// rule draws a grid line.
func (p *picture) rule(x1, y1, x2, y2 float64) {
	p.add(`<line x1="%s" x2="%s" y1="%s" y2="%s" stroke="%s" stroke-opacity="0.3"/>`, coordinate(x1), coordinate(x2),
		coordinate(y1), coordinate(y2), gridColour)
}

// bold writes a heading.
func (p *picture) bold(x, y float64, content string) {
	p.add(`<text x="%s" y="%s" font-weight="bold" fill="%s">%s</text>`, coordinate(x), coordinate(y), textColour,
		escapedXML(content))
}
