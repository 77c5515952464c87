//go:build linux

package units

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Start returns the content of the two files by which a unit becomes a command in a folder and an environment, byte for
// byte: one for EnvironmentFile, and the script that is the unit's own command. Nobody may read them but root and, the
// script, who runs the command. The shell is also what tells of a program that can't be executed: 126 or 127 is the
// exit code then, and why is in the log.
func Start(folder string, command []string, variables map[string]string) (environment, script []byte, err error) {
	var file, text strings.Builder
	fmt.Fprintf(&text, "cd -- %s || exit 126\nunset OLDPWD\n", quoted(folder))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		value := variables[name]
		switch {
		case !validVariable.MatchString(name):
			return nil, nil, fmt.Errorf("the environment variable %q can't be passed on: "+
				"systemd takes names of letters, digits and underscores, a digit not first", name)
		case strings.ContainsRune(value, 0):
			return nil, nil, fmt.Errorf("the environment variable %q holds a zero byte", name)
		case dropped(value) || reserved(name):
			fmt.Fprintf(&text, "export %s=%s\n", name, quoted(value))
		default:
			fmt.Fprintf(&file, "%s=\"%s\"\n", name, quoter.Replace(value))
		}
	}
	text.WriteString("exec")
	for _, argument := range command {
		if strings.ContainsRune(argument, 0) {
			return nil, nil, fmt.Errorf("its argument %q holds a zero byte", argument)
		}
		text.WriteString(" " + quoted(argument))
	}
	text.WriteString("\n")
	return []byte(file.String()), []byte(text.String()), nil
}

// quoted returns a word of a shell that stands for a text.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var validVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// quoter escapes what has a meaning within double quotes.
var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`)

// dropped reports whether systemd leaves a variable with this value out: it takes no control characters but tabs and
// newlines.
func dropped(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || r == 0x7f })
}

// reserved reports whether a variable would mislead what else runs in the unit, which has the same environment: what
// systemd tells there itself, and what would load other libraries into a shell that runs as root. One is changed by cd.
func reserved(name string) bool {
	switch name {
	case "MAINPID", "SERVICE_RESULT", "EXIT_CODE", "EXIT_STATUS", "ENV", "BASH_ENV", "SHELLOPTS", "POSIXLY_CORRECT", "OLDPWD":
		return true
	}
	return strings.HasPrefix(name, "LD_")
}
