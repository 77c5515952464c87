package logs

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func TestParse(t *testing.T) {
	engines := engine.Registry{"process": {Default: true}, "swarm": {}}
	for args, refused := range map[string]string{
		"mnist":                              "",
		"--follow mnist --member mnist-ps-0": "",
		"mnist --all --cluster lab":          "",
		"--plan - --follow":                  "",
		"--plan plan.json mnist":             "",
		"":                                   "logs needs a group",
		"mnist other":                        `was given ["mnist" "other"]`,
		"mnist --all --member mnist-ps-0":    "--all and --member exclude each other",
		"mnist --member other-ps-0":          `--member "other-ps-0" is not of group "mnist", whose members are called mnist-<role>-<index>`,
		"--plan - --cluster lab":             "--plan says which cluster it is",
		"--plan - --engine process --follow": "--plan says which cluster it is",
		"mnist --tail 3":                     "flag provided but not defined",
	} {
		_, err := parse(strings.Fields(args), engines)
		if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
			t.Errorf("%q: %v, want %q", args, err, refused)
		}
	}
}
