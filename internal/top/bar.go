package top

import (
	"fmt"
	"math"
	"strings"
)

// unknown stands for what is not known.
const unknown = "–"

// The widths of bars, and of the screens that have room for them.
const (
	wideBar, wideScreen  = 20, 120
	mediumBar, midScreen = 10, 80
	narrowBar            = 5
	crowded              = 0.9 // the part of a memory from which on its bar warns
	filled, empty        = "█", "░"
	mib, gib             = "MiB", "GiB"
	mibInGiB             = 1024
	percent              = 100
)

// barWidth returns the width of bars on a screen; that of 0 has no bounds.
func barWidth(screen int) int {
	switch {
	case screen == 0 || screen >= wideScreen:
		return wideBar
	case screen >= midScreen:
		return mediumBar
	}
	return narrowBar
}

// bar shows a part of a whole; nothing, where it is not known. What is more than nothing shows.
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

// memoryTone is that of the bar of a memory.
func memoryTone(used *float64, all float64) tone {
	if used != nil && *used >= crowded*all {
		return warning
	}
	return good
}

// number shows a value in a format, or that it is not known.
func number(format string, value *float64) line {
	if value == nil {
		return text(unknown, faint)
	}
	return text(fmt.Sprintf(format, *value), plain)
}

// memory shows an amount of memory in MiB.
func memory(value *float64) line {
	if value == nil {
		return text(unknown, faint)
	}
	amount, unit := scaled(*value, *value)
	return text(amount+" "+unit, plain)
}

// memoryOf shows a part of a memory in MiB, in the unit of the whole; the whole is not known where it is 0.
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

// cpusOf shows how many of a number of processors are busy; the number is not known where it is 0.
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

// toneOf is that of a value, which is faint where it is not known.
func toneOf(value *float64) tone {
	if value == nil {
		return faint
	}
	return plain
}

// scaled returns an amount of memory in the unit that suits a whole.
func scaled(value, whole float64) (amount, unit string) {
	if whole < mibInGiB {
		return fmt.Sprintf("%.0f", value), mib
	}
	return fmt.Sprintf("%.1f", value/mibInGiB), gib
}
