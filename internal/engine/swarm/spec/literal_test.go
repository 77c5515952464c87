package spec

import (
	"fmt"
	"strings"
	"testing"
	"text/template"

	"pgregory.net/rapid"
)

// expand expands a template as Swarm does.
func expand(t interface{ Fatal(...any) }, text string) string {
	parsed, err := template.New("").Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestLiteral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.Custom(func(t *rapid.T) string {
			list := make([]string, rapid.IntRange(0, 30).Draw(t, "members"))
			for i := range list {
				list[i] = fmt.Sprintf("%s-%d%s", rapid.SampledFrom([]string{"job-worker", "a-0", "-"}).Draw(t, "role"),
					i, ":90")
			}
			return encode(map[string][]string{"ps": list[:len(list)/2], "worker": list, "{{": {"x-0", "x-1"}})
		})
		text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune(`{}"-/* .a0[`)), 0, 12, -1),
			lists).Draw(t, "text")
		if got := expand(t, literal(text)); got != text {
			t.Errorf("%q arrives as %q", text, got)
		}
		if got, ok := unquoted(literal(text)); !ok || got != text {
			t.Errorf("%q is read back as %q, %v", text, got, ok)
		}
	})
	for _, foreign := range []string{"{{.Node.ID}}", "{{", `{` + quoted, quoted + "{{.Task.Slot}}"} {
		if got, ok := unquoted(foreign); ok || got != foreign {
			t.Errorf("%q is read as %q, %v: no text is rendered so", foreign, got, ok)
		}
	}
}

// TestLiteralOfMany: the list of all members takes the same space for a thousand members as for ten.
func TestLiteralOfMany(t *testing.T) {
	spec := func(members int) string {
		var ps, workers []string
		for i := range members {
			ps, workers = append(ps, fmt.Sprintf("job-ps-%d:8000", i)), append(workers, fmt.Sprintf("job-worker-%d", i))
		}
		return encode(map[string][]string{"ps": ps, "worker": workers})
	}
	ten, thousand := literal(spec(10)), literal(spec(1000))
	if len(thousand) != len(ten)+4 {
		t.Errorf("ten take %d bytes and a thousand %d:\n%s", len(ten), len(thousand), thousand)
	}
	for _, text := range []string{
		spec(10), spec(1000), `{"cluster":` + spec(300) + `,"task":{"type":"worker","index":0}}`,
	} {
		if got := expand(t, literal(text)); got != text {
			t.Errorf("%s arrives as %s", text, got)
		}
		for _, template := range []string{literal(text), text} {
			if got, ok := unquoted(template); !ok || got != text {
				t.Errorf("%s is read as %s, %v", template, got, ok)
			}
		}
	}
}

// FuzzUnquoted: a template is read as the text that it expands to.
func FuzzUnquoted(f *testing.F) {
	f.Add("{{")
	f.Add(quoted)
	f.Add(literal(
		`["a-0:1","a-1:1","a-2:1","a-3:1","a-4:1","a-5:1","a-6:1","a-7:1","a-8:1","a-9:1","a-10:1","a-11:1","a-12:1","a-13:1","a-14:1"]`,
	))
	f.Fuzz(func(t *testing.T, template string) {
		text, ok := unquoted(template)
		if ok && expand(t, template) != text {
			t.Errorf("%q is read as %q and expands to %q", template, text, expand(t, template))
		}
	})
}
