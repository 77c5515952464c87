package autoscale

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The size of a picture in its own units, as it scales to any size, and the edges of the plot.
const (
	pictureWidth, pictureHeight = 960, 400
	plotLeft, plotTop           = 64.0, 44.0
	plotRight, plotBottom       = 904.0, 344.0
	plotWidth, plotHeight       = plotRight - plotLeft, plotBottom - plotTop

	// pointsALine limits the points of each line.
	pointsALine = 800

	textColour, gridColour        = "#767676", "#808080"
	loadColour                    = "#0072b2"
	capacityColour, membersColour = "#d55e00", "#009e73"
)

// pictureLine is a line of a picture. legend is the distance of its legend entry from the left.
type pictureLine struct {
	class, label, colour, dashes string
	legend                       float64
	values                       []float64
}

// SVG returns a picture of the course: load, the capacity of the members at work, and the members ordered, over time.
// Members use the right axis, on which one is as high as its capacity on the left. The colours are visible on light and
// dark backgrounds.
func (c Course) SVG(trace Trace, model Model) string {
	lines := []pictureLine{
		// Ordered members are visible while they start. After that, the line of those at work covers theirs.
		{"members", "Members ordered (right axis)", membersColour, "5 3", 340, carriedBy(c.Counts, model.Capacity)},
		{"capacity", "Capacity of members at work", capacityColour, "", 100, carriedBy(c.Ready, model.Capacity)},
		{"load", "Load", loadColour, "", 0, drawable(trace.Load)},
	}
	length, highest := 0, 0.0
	for _, line := range lines {
		length = max(length, len(line.values))
		for _, v := range line.values {
			highest = max(highest, v)
		}
	}
	step, top := axisTo(highest)
	covered := covers(trace.Step, length)

	var p picture
	title := "Load and members: no values"
	if length > 0 {
		title = "Load and members, " + fromTo(trace.Start, covered)
	}
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="12" fill="none">`,
		pictureWidth, pictureHeight)
	p.add("<title>%s</title>", escapedXML(title))
	for _, tick := range multiples(step, top) {
		y := plotBottom - plotHeight*tick/top
		p.rule(plotLeft, y, plotRight, y)
		p.text(plotLeft-8, y+4, "end", tickLabel(tick))
	}
	if members := top / model.Capacity; model.Capacity > 0 && members >= 1 && members < 1e15 {
		each, _ := axisTo(members)
		each = max(1, each)
		for count := 0.0; count <= members*(1+1e-9); count += each {
			p.text(plotRight+8, plotBottom-plotHeight*count/members+4, "start", tickLabel(count))
		}
	}
	if length > 0 {
		for _, tick := range timeTicks(trace.Start, covered) {
			x := plotLeft + plotWidth*tick.at.Sub(trace.Start).Seconds()/covered.Seconds()
			p.add(`<line x1="%s" x2="%[1]s" y1="%[2]s" y2="%[3]s" stroke="%[4]s"/>`, coordinate(x),
				coordinate(plotBottom), coordinate(plotBottom+5), textColour)
			p.text(x, plotBottom+20, "middle", tick.label)
		}
		p.text((plotLeft+plotRight)/2, plotBottom+44, "middle", fromTo(trace.Start, covered))
	}
	for _, line := range lines {
		p.line(line, length, top)
		x := plotLeft + line.legend
		p.add(`<line x1="%s" y1="20" x2="%s" y2="20" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`,
			coordinate(x), coordinate(x+24), line.colour, dashesOf(line.dashes))
		p.text(x+32, 24, "start", line.label)
	}
	p.add("</svg>")
	return p.String()
}

// picture is an SVG being built.
type picture struct{ strings.Builder }

func (p *picture) add(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *picture) text(x, y float64, anchor, content string) {
	p.add(`<text x="%s" y="%s" text-anchor="%s" fill="%s">%s</text>`, coordinate(x), coordinate(y), anchor, textColour,
		escapedXML(content))
}

// line draws values, each of which holds until the next one.
func (p *picture) line(line pictureLine, length int, top float64) {
	if len(line.values) == 0 {
		return
	}
	var path strings.Builder
	x := func(i int) string { return coordinate(plotLeft + plotWidth*float64(i)/float64(length)) }
	y := func(i int) string { return coordinate(plotBottom - plotHeight*line.values[i]/top) }
	points := thinned(line.values, pointsALine)
	fmt.Fprintf(&path, "M%s %s", coordinate(plotLeft), y(points[0]))
	before := y(points[0])
	for _, i := range points[1:] {
		if now := y(i); now != before {
			fmt.Fprintf(&path, "H%sV%s", x(i), now)
			before = now
		}
	}
	path.WriteString("H" + x(len(line.values)))
	p.add(`<path class="%s" d="%s" stroke="%s" stroke-width="1.5" stroke-dasharray="%s"/>`, line.class, path.String(),
		line.colour, dashesOf(line.dashes))
}

// dashesOf returns the dash pattern, or "none".
func dashesOf(dashes string) string { return cmp.Or(dashes, "none") }

// thinned returns the indexes of at most this many values: the lowest and highest of each column of the picture, so
// that peaks stay.
func thinned(values []float64, most int) []int {
	var kept []int
	if len(values) <= most {
		for i := range values {
			kept = append(kept, i)
		}
		return kept
	}
	columns := most / 2
	for column := range columns {
		from, to := column*len(values)/columns, (column+1)*len(values)/columns
		low, high := from, from
		for i := from; i < to; i++ {
			if values[i] < values[low] {
				low = i
			}
			if values[i] > values[high] {
				high = i
			}
		}
		kept = append(kept, min(low, high))
		if low != high {
			kept = append(kept, max(low, high))
		}
	}
	return kept
}

// drawable returns values that can be drawn: not negative, NaN or too large.
func drawable(values []float64) []float64 {
	drawn := make([]float64, len(values))
	for i, v := range values {
		if v > 0 { // false for NaN
			drawn[i] = min(v, 1e300)
		}
	}
	return drawn
}

// carriedBy returns the load that these numbers of members can carry.
func carriedBy(counts []int, capacity float64) []float64 {
	carried := make([]float64, len(counts))
	for i, count := range counts {
		carried[i] = float64(count) * capacity
	}
	return drawable(carried)
}

// axisTo returns the distance between ticks of an axis that reaches a value, 1, 2 or 5 times a power of 10, and where
// the axis ends.
func axisTo(highest float64) (step, top float64) {
	if !(highest > 1e-300) { // NaN included
		highest = 1
	}
	power := math.Pow(10, math.Floor(math.Log10(highest/5)))
	step = 10 * power
	for _, factor := range []float64{1, 2, 5} {
		if factor*power*5 >= highest {
			step = factor * power
			break
		}
	}
	return step, step * math.Ceil(highest/step-1e-9)
}

// covers returns the time that this many values cover, limited to what a duration can hold.
func covers(step time.Duration, values int) time.Duration {
	if step <= 0 {
		step = time.Second
	}
	if covered := step.Seconds() * float64(values); covered > 200*365*24*3600 {
		return 200 * 365 * 24 * time.Hour
	}
	return step * time.Duration(values)
}

// timeTick is a time marked on the axis.
type timeTick struct {
	at    time.Time
	label string
}

// mostTicks is the maximum number of marked times, except for one more.
const mostTicks = 8

// timeTicks returns round times in a period.
func timeTicks(start time.Time, covered time.Duration) []timeTick {
	const day = 24 * time.Hour
	start = start.UTC()
	end := start.Add(covered)
	var marked []timeTick
	for _, every := range []time.Duration{
		time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond,
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day,
	} {
		if covered/every > mostTicks {
			continue
		}
		for at := start.Truncate(every); !at.After(end); at = at.Add(every) {
			if at.Before(start) {
				continue
			}
			layout := "15:04"
			switch {
			case at.Equal(at.Truncate(day)):
				layout = "2 Jan"
			case every < time.Second:
				layout = "15:04:05.000"
			case every < time.Minute:
				layout = "15:04:05"
			}
			marked = append(marked, timeTick{at, at.Format(layout)})
		}
		return marked
	}
	for _, months := range []int{1, 2, 3, 6, 12, 24, 60, 120, 240, 480} {
		if covered/(30*day*time.Duration(months)) > mostTicks {
			continue
		}
		layout := "Jan 2006"
		if months >= 12 {
			layout = "2006"
		}
		since := start.Year()*12 + int(start.Month()) - 1
		for month := since - since%months; ; month += months {
			at := time.Date(month/12, time.Month(month%12+1), 1, 0, 0, 0, 0, time.UTC)
			if at.After(end) {
				return marked
			}
			if !at.Before(start) {
				marked = append(marked, timeTick{at, at.Format(layout)})
			}
		}
	}
	return nil
}

// fromTo formats a period.
func fromTo(start time.Time, covered time.Duration) string {
	layout := "2006-01-02 15:04"
	if covered < 10*time.Minute {
		layout = time.DateTime
	}
	start = start.UTC()
	return start.Format(layout) + " to " + start.Add(covered).Format(layout) + " UTC"
}

// tickLabel formats the number of a tick.
func tickLabel(v float64) string {
	unit := ""
	switch {
	case v >= 1e15 || v > 0 && v < 1e-4:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case v >= 1e10:
		v, unit = v/1e9, "G"
	case v >= 1e7:
		v, unit = v/1e6, "M"
	case v >= 1e4:
		v, unit = v/1e3, "k"
	}
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64) + unit
}

// coordinate formats a coordinate.
func coordinate(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// escapedXML escapes a text for XML.
func escapedXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // writing to a Builder can't fail
	return b.String()
}
