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
		"mnist other":                        `got ["mnist" "other"]`,
		"mnist --all --member mnist-ps-0":    "--all and --member are mutually exclusive",
		"mnist --member other-ps-0":          `--member "other-ps-0" is not in group "mnist", whose members are named mnist-<role>-<index>`,
		"--plan - --cluster lab":             "--plan already names the cluster",
		"--plan - --engine process --follow": "--plan already names the cluster",
		"--plan - --follow --applied file":   "",
		"--plan - --applied file":            "--applied needs --plan and --follow",
		"mnist --follow --applied file":      "--applied needs --plan and --follow",
		"mnist --tail 3":                     "flag provided but not defined",
	} {
		_, err := parse(strings.Fields(args), engines)
		if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
			t.Errorf("%q: %v, want %q", args, err, refused)
		}
	}
}
