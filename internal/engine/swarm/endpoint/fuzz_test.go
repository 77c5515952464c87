package endpoint

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzDefault: whatever Docker's configuration and its contexts contain leads either to an endpoint that survives
// printing and parsing and uses verified TLS, or to an error that names its source.
func FuzzDefault(f *testing.F) {
	f.Add("", `{"currentContext":"lab"}`, `{"Endpoints":{"docker":{"Host":"ssh://ops@gpu1","SkipTLSVerify":false}}}`)
	f.Add("gpu2:2376", "", "")
	f.Add(" ssh://ops:hunter2@gpu1 ", "{}", "{}")
	f.Add("", `{"currentContext":"../../lab"}`, `{"Endpoints":{"docker":{"Host":"tcp://gpu2:2376"}}}`)
	f.Add("", `{"CURRENTCONTEXT":"lab"}`, `{"Endpoints":{"docker":{"Host":"tcp://gpu2:2376","SkipTLSVerify":true}}}`)
	f.Add("", `{"currentContext":"lab"}`, `{"Endpoints":{"docker":{}}}`)
	f.Add("", `{"currentContext":"lab"}`, `{"Endpoints":null}`)
	f.Add("", `{"currentContext":7}`, `[]`)
	f.Add("", `null`, `null`)
	config := f.TempDir()
	f.Fuzz(func(t *testing.T, host, content, meta string) {
		write(t, content, config, "config.json")
		write(t, meta, config, "contexts", "meta", contextID("lab"), "meta.json")
		env := map[string]string{"DOCKER_CONFIG": config, "DOCKER_HOST": host}
		for _, name := range []string{"", "lab"} {
			env["DOCKER_CONTEXT"] = name
			e, err := Default(func(name string) string { return env[name] })
			if err != nil {
				if text := err.Error(); !strings.Contains(text, "DOCKER_HOST") &&
					!strings.Contains(text, filepath.Join(config, "config.json")) &&
					!strings.Contains(text, "DOCKER_CONTEXT") {
					t.Errorf("the error does not say where the endpoint comes from: %v", err)
				}
				continue
			}
			again, err := Parse(e.String())
			again.CertPath = e.CertPath
			if err != nil || again != e {
				t.Errorf("%+v prints as %q, which is %+v (%v)", e, e, again, err)
			}
		}
	})
}

// FuzzPassword: a password in an address is in no error, whatever else is wrong with the address.
func FuzzPassword(f *testing.F) {
	for _, rest := range []string{
		"gpu1", "", "gpu1:port", "[fd00::1", "gpu1/run/docker.sock", "gpu1 ", "gpu1#", "gpu1?a", "\x7f", "%zz",
	} {
		f.Add("ssh://", "ops", "@"+rest)
		f.Add("ssh://", "ops", "/@"+rest)
		f.Add("tcp://", "", "?@"+rest)
		f.Add("http://", "a@b", "#@"+rest)
		f.Add("", "ops", "@"+rest)
	}
	f.Fuzz(func(t *testing.T, scheme, user, rest string) {
		const password = "hunter2"
		if strings.Contains(scheme+user+rest, password) || !strings.Contains(rest, "@") {
			t.Skip("another part of the address has the same text, or this is no password")
		}
		if _, err := Parse(scheme + user + ":" + password + rest); err != nil &&
			strings.Contains(err.Error(), password) {
			t.Errorf("the error shows the password: %v", err)
		}
	})
}
