package top

import "testing"

func TestBar(t *testing.T) {
	for name, c := range map[string]struct {
		part  *float64
		whole float64
		width int
		want  string
	}{
		"nothing":              {new(0.0), 8, 5, "░░░░░"},
		"hardly anything":      {new(0.001), 8, 5, "█░░░░"},
		"half":                 {new(4.0), 8, 4, "██░░"},
		"all":                  {new(8.0), 8, 5, "█████"},
		"more than all":        {new(9.0), 8, 5, "█████"},
		"less than nothing":    {new(-1.0), 8, 5, "░░░░░"},
		"not known":            {nil, 8, 5, ""},
		"of what is not known": {new(4.0), 0, 5, ""},
	} {
		got := bar(c.part, c.whole, c.width, good)
		if got.String() != c.want || got.width() != c.width {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAmounts(t *testing.T) {
	for name, c := range map[string]struct {
		got  line
		want string
	}{
		"MiB":                         {memory(new(511.6)), "512 MiB"},
		"GiB":                         {memory(new(1536.0)), "1.5 GiB"},
		"no memory":                   {memory(new(0.0)), "0 MiB"},
		"not known":                   {memory(nil), "–"},
		"of a whole":                  {memoryOf(new(512.0), 16_384), "0.5/16.0 GiB"},
		"of a small whole":            {memoryOf(new(12.0), 512), "12/512 MiB"},
		"not known of a whole":        {memoryOf(nil, 16_384), "–/16.0 GiB"},
		"of no whole":                 {memoryOf(new(512.0), 0), "512 MiB"},
		"processors":                  {cpusOf(new(3.14), 16), "3.1/16"},
		"a part of a processor":       {cpusOf(new(0.0), 1.5), "0.0/1.5"},
		"processors, not known":       {cpusOf(nil, 128), "–/128"},
		"processors of nobody knows":  {cpusOf(new(3.14), 0), "3.1"},
		"nothing known of processors": {cpusOf(nil, 0), "–"},
		"a number":                    {number("%.0f W", new(212.4)), "212 W"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestBarsSuitTheScreen(t *testing.T) {
	for screen, want := range map[int]int{0: 20, 40: 5, 79: 5, 80: 10, 119: 10, 120: 20, 300: 20} {
		if got := barWidth(screen); got != want {
			t.Errorf("on a screen of %d, bars have %d, want %d", screen, got, want)
		}
	}
}
