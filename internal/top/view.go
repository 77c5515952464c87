package top

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/color"

	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

// fallbacks replace characters that terminals without UTF-8 don't have.
var fallbacks = map[rune]string{
	'█': "#", '░': ".", '–': "-", '…': "~", '°': " ", '↑': "^", '↓': "v", '←': "<", '→': ">", '\uFFFD': "?",
}

// view shows frames on a screen.
type view struct {
	screen tcell.Screen
	by     sorting
	// top is the number of the first visible line of the body, and page how many are visible.
	top, page int
	// filter is what rows have to contain, and typing reports whether keys are added to it.
	filter string
	typing bool
	// tab is what is shown, and member whose log; further is how many members to move on to another one.
	tab     tab
	member  string
	further int
	// following keeps the end of a log visible while it grows.
	following bool
}

// live shows the cluster on the terminal, and reads it again after each interval, until the user quits or ctx is done.
func live(ctx context.Context, source *source, shown state, interval time.Duration) error {
	// Other capabilities of the terminal are not queried, as a late answer would be taken for key presses.
	screen, err := tcell.NewScreen(tcell.OptNegotiation(false))
	if err != nil {
		return fmt.Errorf("this terminal is not usable; --once prints a frame as plain text: %w", err)
	}
	for r, instead := range fallbacks {
		screen.RegisterRuneFallback(r, instead)
	}
	if err := screen.Init(); err != nil {
		return fmt.Errorf("this terminal is not usable; --once prints a frame as plain text: %w", err)
	}
	defer screen.Fini()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, 1) // one read at a time, which may outlive this
	next := time.NewTimer(interval)
	defer next.Stop()
	due, reading, asked := true, false, query{}
	v := view{screen: screen}
	for {
		shown.query = v.query(shown.reading)
		if !reading && (due || shown.query != asked) {
			due, reading, asked = false, true, shown.query
			next.Reset(interval)
			go func(q query) { answers <- source.read(ctx, q) }(asked)
		}
		v.draw(shown)
		select {
		case <-ctx.Done():
			return nil
		case a := <-answers:
			reading = false
			shown.take(a)
		case <-next.C:
			due = true
		case event, open := <-screen.EventQ():
			if !open {
				return nil
			}
			quit, err := v.handle(event)
			if quit || err != nil {
				return err
			}
		}
	}
}

// query returns what to read for the tab.
func (v *view) query(r overview.Reading) query {
	if v.tab != tabLogs {
		return query{tab: v.tab}
	}
	v.member, v.further = whose(r, v.member, v.further), 0
	return query{v.tab, v.member}
}

// open shows a tab, or another log, from its beginning, or a log from its end.
func (v *view) open(t tab) { v.tab, v.top, v.following = t, 0, t == tabLogs }

// another shows the log of the member so many places further, on the tab with logs.
func (v *view) another(further int) {
	if v.tab == tabLogs {
		v.further += further
		v.open(tabLogs)
	}
}

// handle handles an event, and reports whether to quit.
func (v *view) handle(event tcell.Event) (quit bool, err error) {
	switch e := event.(type) {
	case *tcell.EventResize:
		v.screen.Sync()
	case *tcell.EventError:
		return true, fmt.Errorf("lost the terminal: %w", e)
	case *tcell.EventKey:
		return v.key(e), nil
	}
	return false, nil
}

// key handles a key, and reports whether to quit.
func (v *view) key(e *tcell.EventKey) (quit bool) {
	if v.typing && v.typed(e) {
		return false
	}
	before := v.top
	defer func() { v.following = v.following && v.top >= before }()
	switch e.Key() {
	case tcell.KeyEsc:
		v.filter = ""
	case tcell.KeyCtrlC:
		return true
	case tcell.KeyCtrlL:
		v.screen.Sync()
	case tcell.KeyUp:
		v.top--
	case tcell.KeyDown:
		v.top++
	case tcell.KeyPgUp:
		v.top -= v.page
	case tcell.KeyPgDn:
		v.top += v.page
	case tcell.KeyHome:
		v.top = 0
	case tcell.KeyEnd:
		v.top = maxTop
	case tcell.KeyTab:
		v.open((v.tab + 1) % numTabs)
	case tcell.KeyLeft:
		v.another(-1)
	case tcell.KeyRight:
		v.another(1)
	case tcell.KeyRune:
		switch e.Str() {
		case "1", "2", "3":
			v.open(tab(e.Str()[0] - '1'))
		case "q":
			return true
		case "n":
			v.by = byName
		case "c":
			v.by = byCPU
		case "m":
			v.by = byMemory
		case "k":
			v.top--
		case "j":
			v.top++
		case " ":
			v.top += v.page
		case "/":
			v.typing = true
		}
	}
	return false
}

// typed adds a key to the filter, and reports whether it belongs there.
func (v *view) typed(e *tcell.EventKey) bool {
	switch e.Key() {
	case tcell.KeyRune:
		v.filter += e.Str()
	case tcell.KeyBackspace, tcell.KeyBackspace2:
		_, size := utf8.DecodeLastRuneInString(v.filter)
		v.filter = v.filter[:len(v.filter)-size]
	case tcell.KeyEnter:
		v.typing = false
	case tcell.KeyEsc:
		v.typing, v.filter = false, ""
	default:
		return false
	}
	return true
}

// maxTop is beyond the end of any body.
const maxTop = 1 << 30

// draw shows the state, between the head at the top and the keys at the bottom.
func (v *view) draw(s state) {
	width, height := v.screen.Size()
	s.filter = v.filter
	f := s.frame(v.by, width)
	f.head = append(f.head, s.tabLine().printable().cut(width))
	v.page = max(height-len(f.head)-1, 1)
	last := max(len(f.body)-v.page, 0)
	if v.following {
		v.top = last
	}
	v.top = max(min(v.top, last), 0)
	v.following = v.tab == tabLogs && v.top == last
	shown := f.body[v.top:min(v.top+v.page, len(f.body))]
	v.screen.Clear()
	for y, l := range append(f.head, shown...) {
		v.put(y, l)
	}
	v.put(height-1, v.keys(len(f.body)).padded(width, false))
	v.screen.Show()
}

// keys shows which keys to press, and which of the lines are visible if not all are; or the filter while it is typed.
func (v *view) keys(lines int) line {
	if v.typing {
		return line{
			{"/", strong}, {printable.Line(v.filter), plain}, {"█", good},
			{"  Enter keeps this filter, Esc clears it", faint},
		}
	}
	l := line{{"q", strong}, {" quit ", faint}}
	switch v.tab {
	case tabCluster:
		l = append(l, v.sortKeys()...)
	case tabLogs:
		l = append(l, span{" ←→", strong}, span{" other member ", faint})
	}
	hint := line{{" / ", strong}, {"filter", faint}}
	if v.filter != "" {
		l = append(append(l, hint...), span{" " + printable.Line(v.filter), good})
	}
	if lines > v.page {
		l = append(l, span{fmt.Sprintf(" ↑↓ PgUp PgDn  %d–%d of %d", v.top+1, min(v.top+v.page, lines), lines), plain})
	}
	if v.filter == "" {
		l = append(l, hint...) // last, as a narrow screen has no room for it
	}
	return l
}

// sortKeys shows by what to sort.
func (v *view) sortKeys() line {
	l := text(" sort by ", faint)
	for _, k := range []struct {
		by   sorting
		name string
	}{{byName, "name"}, {byCPU, "cpu"}, {byMemory, "memory"}} {
		rest := faint
		if k.by == v.by {
			rest = good
		}
		l = append(l, span{k.name[:1], strong}, span{k.name[1:] + " ", rest})
	}
	return l
}

// styles are the styles of tones, in the terminal's own colours, which suit its background.
var styles = map[tone]tcell.Style{
	plain:   tcell.StyleDefault,
	faint:   tcell.StyleDefault.Dim(true),
	strong:  tcell.StyleDefault.Bold(true),
	good:    tcell.StyleDefault.Foreground(color.Green),
	warning: tcell.StyleDefault.Foreground(color.Olive),
	bad:     tcell.StyleDefault.Foreground(color.Maroon).Bold(true),
}

func (v *view) put(y int, l line) {
	x := 0
	for _, s := range l {
		v.screen.PutStrStyled(x, y, s.text, styles[s.tone])
		x += line{s}.width()
	}
}
