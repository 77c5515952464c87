package meter

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

func TestLengthAt(t *testing.T) {
	const answer = `{"queues": [{"name": "jobs", "messages": 12}, {"name": "mail", "messages": 0}], "text": "12", "none": null, "odd": 1.5, "below": -1, "vast": 1e300, "deep": {"a.b": 3.0}}`
	for path, want := range map[string]float64{
		"queues.0.messages":                  12,
		"odd":                                1.5,
		`queues.#(name=="mail").messages`:    0,
		"queues.#":                           2,
		`deep.a\.b`:                          3,
		"text|@fromstr":                      12,
		`[queues.0.messages,queues.#].0`:     12,
		`queues.#(messages>10)#|0|@values|1`: 12,
	} {
		if got, err := lengthAt([]byte(answer), path, false); err != nil || got != want {
			t.Errorf("at %s there is %v, %v; want %v", path, got, err, want)
		}
	}
	for path, says := range map[string]string{
		"queues.2.messages": `no value at "queues.2.messages"`,
		"text":              `the value at "text" is "\"12\""; it must be a number of 0 or more`,
		"none":              `is "null"`,
		"below":             `is "-1"`,
		"vast":              `is "1e300"`,
		"queues":            `it must be a number`,
		"":                  `it is "{\"queues\"`,
	} {
		if got, err := lengthAt([]byte(answer), path, false); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("at %q there is %v, %v; want an error with %q", path, got, err, says)
		}
	}
	if got, err := lengthAt([]byte(" 7\n"), "", false); err != nil || got != 7 {
		t.Errorf("a number alone is %v, %v", got, err)
	}
	for _, body := range []string{"", "<html>", `{"a": 1`, "1 2", strings.Repeat("[", bounded.Answer)} {
		if got, err := lengthAt([]byte(body), "a", false); err == nil ||
			!strings.Contains(err.Error(), "not valid JSON") || len(err.Error()) > 2*shownBytes {
			t.Errorf("%.20q has the length %v, %v", body, got, err)
		}
	}
}

// TestApplicationsAtASparkMaster: the paths of the module spark count the applications that a master reports, by name,
// and the others.
func TestApplicationsAtASparkMaster(t *testing.T) {
	waiting, err := os.ReadFile("testdata/spark_master.json")
	if err != nil {
		t.Fatal(err)
	}
	const idle = `{"activeapps" : [ ], "status" : "ALIVE"}`
	for path, want := range map[string]float64{
		"activeapps.#":                                                         3,
		`activeapps.#(name=="fares")#|#`:                                       1,
		`activeapps.#(name=="fare")#|#`:                                        0,
		`activeapps.#(name!="fares")#|#`:                                       2,
		`activeapps.#(name!="fares")#|#(name!="trips")#|#`:                     1,
		`activeapps.#(name!="fares")#|#(name!="fare")#|#`:                      2,
		`activeapps.#(name!="arrears")#|#(name!="fares")#|#(name!="trips")#|#`: 0,
	} {
		if got, err := lengthAt(waiting, path, false); err != nil || got != want {
			t.Errorf("at %s there is %v, %v; want %v", path, got, err, want)
		}
		if got, err := lengthAt([]byte(idle), path, false); err != nil || got != 0 {
			t.Errorf("at %s of an idle master there is %v, %v; want 0", path, got, err)
		}
	}
}

func TestPrintedLength(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, " 17\n": 17, "1.5": 1.5, "1e3": 1000, "9007199254740992": 1 << 53,
	} {
		if got, err := printedLength([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "-1", "1,5", "0x10", "Inf", "NaN", "1 2", "12 jobs", `"12"`, "9007199254740994", "99999999999999999999",
	} {
		if got, err := printedLength([]byte(text)); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("it printed %q; expected a number of 0 or more", text)) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

// Whatever is answered, a length is valid.
func FuzzLengthAt(f *testing.F) {
	for _, seed := range []string{"7", `{"a":[1,{"b":"2"}]}`, "1e999", "-0", `{"a":1.0}`, "[[[["} {
		f.Add([]byte(seed), "a.0")
		f.Add([]byte(seed), "")
		f.Add([]byte(seed), `a.#(b=="2")#|@fromstr`)
	}
	f.Fuzz(func(t *testing.T, body []byte, path string) {
		length, err := lengthAt(body, path, false)
		switch {
		case err != nil && (length != 0 || len(err.Error()) > 4*(shownBytes+len(path))+200):
			t.Errorf("%v, %v", length, err)
		case err == nil && !isAmount(length):
			t.Errorf("%q at %q is %v", body, path, length)
		case err == nil && path == "" && gjson.ParseBytes(body).Num != length:
			t.Errorf("%q is %v", body, length)
		}
	})
}

// parsed returns a text as a number; -1 if it is none.
func parsed(text string) float64 {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return -1
	}
	return number
}

// Whatever is printed, a length is valid and equals what was printed.
func FuzzPrintedLength(f *testing.F) {
	for _, seed := range []string{"7", "-0", " 12\n", "1_000", "+5", "\x00", "18446744073709551615"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		length, err := printedLength(output)
		switch {
		case err != nil:
			if length != 0 {
				t.Errorf("%q is %v, %v", output, length, err)
			}
		case !isAmount(length), fmt.Sprint(length) != fmt.Sprint(parsed(strings.TrimSpace(string(output)))):
			t.Errorf("%q is %v", output, length)
		}
	})
}
