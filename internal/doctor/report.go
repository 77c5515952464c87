package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

// Report is what was found on all hosts.
type Report struct {
	// Engines are those that hosts were examined for.
	Engines     []string     `json:"engines"`
	Hosts       []HostReport `json:"hosts"`
	Problems    int          `json:"problems"`
	Warnings    int          `json:"warnings"`
	Unreachable int          `json:"unreachable"`
}

// HostReport is what was found on one.
type HostReport struct {
	// Address is that of the host, "local" for this machine.
	Address  string `json:"address"`
	Hostname string `json:"hostname,omitempty"`
	System   string `json:"system,omitempty"`
	// Error is why the host could not be examined; nothing else is known then.
	Error string `json:"error,omitempty"`
	// Ready is, by engine, whether no problem concerns it.
	Ready  map[string]bool `json:"ready,omitempty"`
	Checks []Finding       `json:"checks,omitempty"`
}

// here is the address of this machine.
const here = "local"

// reportOf is the report of a host, all of which can be printed.
func reportOf(address string, host Host, err error) HostReport {
	r := HostReport{Address: printable.Line(cmp.Or(address, here))}
	if err != nil {
		r.Error = printable.Line(err.Error())
		return r
	}
	r.Hostname, r.System = printable.Line(host.Hostname), printable.Line(host.OS.Name)
	r.Checks = Examine(host)
	for i := range r.Checks {
		r.Checks[i].Found, r.Checks[i].Fix = printable.Line(r.Checks[i].Found), printable.Line(r.Checks[i].Fix)
	}
	r.Ready = Ready(r.Checks, host.Engines)
	return r
}

// sum counts what was found.
func sum(engines []string, hosts []HostReport) Report {
	r := Report{Engines: engines, Hosts: hosts}
	for _, host := range hosts {
		if host.Error != "" {
			r.Unreachable++
		}
		for _, f := range host.Checks {
			switch f.Result {
			case Problem:
				r.Problems++
			case Warning:
				r.Warnings++
			}
		}
	}
	return r
}

// writeJSON writes the report as one document.
func (r Report) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false) // commands have ampersands
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// resultWords are the words for results.
var resultWords = map[Result]string{NotApplicable: "n/a", OK: "ok", Warning: "warning", Problem: "problem"}

// writeText writes the report for people.
func (r Report) writeText(out io.Writer) error {
	var b strings.Builder
	width := 0
	for _, c := range checks {
		width = max(width, len(c.name))
	}
	for _, host := range r.Hosts {
		host.writeTo(&b, r.Engines, width)
		b.WriteByte('\n')
	}
	b.WriteString(r.summary() + "\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func (h HostReport) writeTo(b *strings.Builder, engines []string, width int) {
	if h.Error != "" {
		fmt.Fprintf(b, "%s\n  %s\n", h.Address, h.Error)
		return
	}
	address := h.Address
	if address == here {
		address = "this machine"
	}
	fmt.Fprintf(b, "%s (%s): %s\n", cmp.Or(h.Hostname, "unnamed host"), address, cmp.Or(h.System, "unknown system"))
	for _, f := range h.Checks {
		found := f.Found
		if len(f.Engines) > 0 && len(f.Engines) < len(engines) {
			found = "for " + strings.Join(f.Engines, ", ") + ": " + found
		}
		fmt.Fprintf(b, "  %-7s  %-*s  %s\n", resultWords[f.Result], width, f.Check, found)
		if f.Fix != "" {
			fmt.Fprintf(b, "  %-7s  %-*s  fix: %s\n", "", width, "", f.Fix)
		}
	}
	var ready, not []string
	for _, engine := range engines {
		if h.Ready[engine] {
			ready = append(ready, engine)
		} else {
			not = append(not, engine)
		}
	}
	verdict := "ready for " + strings.Join(ready, " and ")
	switch {
	case ready == nil:
		verdict = "not ready for " + strings.Join(not, " or ")
	case not != nil:
		verdict += ", and not for " + strings.Join(not, " or ")
	}
	fmt.Fprintf(b, "  %s\n", verdict)
}

// summary says what was found in one line.
func (r Report) summary() string {
	parts := []string{count(len(r.Hosts), "host")}
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, text)
		}
	}
	add(r.Problems, count(r.Problems, "problem"))
	add(r.Warnings, count(r.Warnings, "warning"))
	add(r.Unreachable, fmt.Sprintf("%d could not be examined", r.Unreachable))
	if len(parts) == 1 {
		parts = append(parts, "no problems")
	}
	return strings.Join(parts, ", ")
}
