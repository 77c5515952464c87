package top

import (
	"fmt"
	"math"
	"strings"
)

// unknown stands for unknown values.
const unknown = "–"

// The widths of bars, and of the screens that have room for them.
const (
	wideBar, wideScreen  = 20, 120
	mediumBar, midScreen = 10, 80
	narrowBar            = 5
	crowded              = 0.9 // the fraction of a memory from which its bar warns
	filled, empty        = "█", "░"
	mib, gib             = "MiB", "GiB"
	mibInGiB             = 1024
	percent              = 100
)

// barWidth returns the width of bars for a screen width; 0 means unlimited.
func barWidth(screen int) int {
	switch {
	case screen == 0 || screen >= wideScreen:
		return wideBar
	case screen >= midScreen:
		return mediumBar
	}
	return narrowBar
}

// bar shows a part of a whole; spaces if it is unknown. Anything above 0 is visible.
func bar(part *float64, whole float64, width int, t tone) line {
	if part == nil || whole <= 0 {
		return text(strings.Repeat(" ", width), plain)
	}
	share := min(max(*part/whole, 0), 1)
	full := int(math.Round(share * float64(width)))
	if share > 0 {
		full = max(full, 1)
	}
	return line{{strings.Repeat(filled, full), t}, {strings.Repeat(empty, width-full), faint}}
}

// memoryTone returns the tone of a memory's bar.
func memoryTone(used *float64, all float64) tone {
	if used != nil && *used >= crowded*all {
		return warning
	}
	return good
}

// number formats a value that may be unknown.
func number(format string, value *float64) line {
	if value == nil {
		return text(unknown, faint)
	}
	return text(fmt.Sprintf(format, *value), plain)
}

// memory formats an amount of memory in MiB.
func memory(value *float64) line {
	if value == nil {
		return text(unknown, faint)
	}
	amount, unit := scaled(*value, *value)
	return text(amount+" "+unit, plain)
}

// memoryOf formats a part of a memory in MiB, in the unit that suits the whole. A whole of 0 means unknown.
func memoryOf(part *float64, whole int64) line {
	if whole == 0 {
		return memory(part)
	}
	all, unit := scaled(float64(whole), float64(whole))
	used := unknown
	if part != nil {
		used, _ = scaled(*part, float64(whole))
	}
	return text(used+"/"+all+" "+unit, toneOf(part))
}

// cpusOf formats how many of a number of CPUs are busy. A number of 0 means unknown.
func cpusOf(busy *float64, all float64) line {
	used := unknown
	if busy != nil {
		used = fmt.Sprintf("%.1f", *busy)
	}
	if all == 0 {
		return text(used, toneOf(busy))
	}
	return text(fmt.Sprintf("%s/%.4g", used, all), toneOf(busy))
}

// toneOf returns the tone of a value, which is faint if unknown.
func toneOf(value *float64) tone {
	if value == nil {
		return faint
	}
	return plain
}

// scaled formats an amount of memory in the unit that suits whole.
func scaled(value, whole float64) (amount, unit string) {
	if whole < mibInGiB {
		return fmt.Sprintf("%.0f", value), mib
	}
	return fmt.Sprintf("%.1f", value/mibInGiB), gib
}
