//go:build linux

package units

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Start returns the two files by which a unit runs exactly this command in a directory and an environment: one for
// EnvironmentFile, and the script that the unit executes. Only root may read them, and the user that runs the command
// the script. A program that can't be executed makes the shell exit with 126 or 127; the log has the reason.
func Start(folder string, command []string, variables map[string]string) (environment, script []byte, err error) {
	var file, text strings.Builder
	fmt.Fprintf(&text, "cd -- %s || exit 126\nunset OLDPWD\n", quoted(folder))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		value := variables[name]
		switch {
		case !validVariable.MatchString(name):
			return nil, nil, fmt.Errorf("the environment variable %q can't be passed on: "+
				"systemd allows only letters, digits and underscores in names, and no digit at the start", name)
		case strings.ContainsRune(value, 0):
			return nil, nil, fmt.Errorf("the environment variable %q contains a NUL byte", name)
		case dropped(value) || reserved(name):
			fmt.Fprintf(&text, "export %s=%s\n", name, quoted(value))
		default:
			fmt.Fprintf(&file, "%s=\"%s\"\n", name, quoter.Replace(value))
		}
	}
	text.WriteString("exec")
	for _, argument := range command {
		if strings.ContainsRune(argument, 0) {
			return nil, nil, fmt.Errorf("its argument %q contains a NUL byte", argument)
		}
		text.WriteString(" " + quoted(argument))
	}
	text.WriteString("\n")
	return []byte(file.String()), []byte(text.String()), nil
}

// quoted returns a text as one word for a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var validVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// quoter escapes what is special within double quotes.
var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`)

// dropped reports whether systemd omits a variable with this value: it accepts no control characters except tab and
// newline.
func dropped(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || r == 0x7f })
}

// reserved reports whether a variable would mislead other programs in the unit, which share its environment: variables
// that systemd sets there itself, and those that make a shell running as root load other libraries. OLDPWD is there
// because cd changes it.
func reserved(name string) bool {
	switch name {
	case "MAINPID", "SERVICE_RESULT", "EXIT_CODE", "EXIT_STATUS", "ENV", "BASH_ENV", "SHELLOPTS", "POSIXLY_CORRECT",
		"OLDPWD":
		return true
	}
	return strings.HasPrefix(name, "LD_")
}
