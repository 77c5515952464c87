package sshclient

import (
	"os/exec"
	"strings"
	"testing"
)

func TestQuote(t *testing.T) {
	for want, words := range map[string][]string{
		"":                            {},
		"''":                          {""},
		"sudo -n /usr/bin/env":        {"sudo", "-n", "/usr/bin/env"},
		`sh -c 'echo "$1"' sh 'a b'`:  {"sh", "-c", `echo "$1"`, "sh", "a b"},
		`'it'\''s'`:                   {"it's"},
		"'~' 'a=b' '#' '*' ';' '\n'":  {"~", "a=b", "#", "*", ";", "\n"},
		"root@gpu1:22 a_b.c-d:e+f/g1": {"root@gpu1:22", "a_b.c-d:e+f/g1"},
	} {
		if got := Quote(words...); got != want {
			t.Errorf("%q becomes %s, want %s", words, got, want)
		}
	}
}

// FuzzQuote: a shell sees exactly these words.
func FuzzQuote(f *testing.F) {
	for _, word := range []string{
		"", "plain", "two words", "it's", `"$(id)"`, "`id`", "a\nb", `\`, "!!", "-n", "~root", "é\xff", "{a,b}", "$'x'",
	} {
		f.Add(word, "second")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		if strings.ContainsRune(first+second, 0) {
			t.Skip("no word of a command has a zero byte")
		}
		shell, err := exec.LookPath("sh")
		if err != nil {
			t.Skip(err)
		}
		output, err := exec.Command(shell, "-c", Quote("printf", `%s\0`, first, second)).Output()
		if want := first + "\x00" + second + "\x00"; err != nil || string(output) != want {
			t.Errorf("the shell sees %q, want %q: %v", output, want, err)
		}
	})
}
