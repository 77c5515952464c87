package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretsDoNotPrint(t *testing.T) {
	settings := Settings{SSH: SSHCredentials{PrivateKey: "hunter2", Passphrase: "hunter2"}, Docker: DockerSettings{
		TLS: TLSCredentials{Key: "hunter2"},
		Registries: map[string]RegistryCredentials{
			"docker.io": {Username: "ops", Password: "hunter2", Token: "hunter2"},
		},
	}}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("settings", "settings", settings, "secret", settings.Docker.TLS.Key)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("settings", "settings", settings, "secret", settings.Docker.TLS.Key)
	encoded, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprint(settings),
		fmt.Sprintf("%v %+v %#v %q %x", settings, settings, settings, settings.Docker.TLS.Key, settings.Docker.TLS.Key),
		log.String(), string(encoded),
	} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) {
			t.Errorf("a secret is shown: %s", text)
		}
		if !strings.Contains(text, "(redacted)") {
			t.Errorf("a secret that is there is not to be seen as such: %s", text)
		}
	}
	if fmt.Sprint(Secret("")) != "" {
		t.Error("an empty secret looks like one")
	}
}
