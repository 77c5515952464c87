package autoscale

import (
	"math"
	"strconv"
	"time"
)

// say builds a sentence from strings, ints, float64s and durations, with four significant digits for values below 1000.
//
// Every decision has a reason, even in a simulation of a year of minutes, and this takes a fraction of the time of
// fmt.Sprintf.
func say(parts ...any) string {
	text := make([]byte, 0, 128)
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			text = append(text, part...)
		case int:
			text = strconv.AppendInt(text, int64(part), 10)
		case float64:
			text = appendValue(text, part)
		case time.Duration:
			text = append(text, part.String()...)
		}
	}
	return string(text)
}

// Number formats a value as in the reasons of decisions.
func Number(value float64) string { return string(appendValue(nil, value)) }

// appendValue appends a value with four significant digits, or with all digits before the point.
func appendValue(text []byte, value float64) []byte {
	const least, most = 0.001, 1e15
	size := math.Abs(value)
	if size != 0 && size < least || size >= most || math.IsNaN(value) {
		return strconv.AppendFloat(text, value, 'g', 4, 64)
	}
	if value < 0 {
		text = append(text, '-')
	}
	// Integer arithmetic takes a fifth of the time of strconv.AppendFloat.
	scale, digits := int64(1), 0
	for ; digits < 3 && size*float64(scale) < 999.95; digits++ {
		scale *= 10
	}
	scaled := int64(math.Round(size * float64(scale)))
	text = strconv.AppendInt(text, scaled/scale, 10)
	rest := scaled % scale
	if rest == 0 {
		return text
	}
	text = append(text, '.')
	for ; rest > 0; rest %= scale {
		scale /= 10
		text = append(text, byte('0'+rest/scale))
	}
	return text
}

// plural returns the word for this many members.
func plural(n int) string {
	if n == 1 {
		return " member"
	}
	return " members"
}
