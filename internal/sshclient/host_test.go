package sshclient

import (
	"strings"
	"testing"
)

func TestParseHost(t *testing.T) {
	tests := map[string]struct {
		want   Host
		string string // if it differs from the address
		err    string
	}{
		"gpu1":              {want: Host{Name: "gpu1", Port: 22}},
		"gpu1/":             {want: Host{Name: "gpu1", Port: 22}, string: "gpu1"},
		"gpu1:22":           {want: Host{Name: "gpu1", Port: 22}, string: "gpu1"},
		"ops@gpu1.lab:2222": {want: Host{User: "ops", Name: "gpu1.lab", Port: 2222}},
		"ann%40corp.example@10.0.0.1": {
			want: Host{User: "ann@corp.example", Name: "10.0.0.1", Port: 22}, string: "ann%40corp.example@10.0.0.1",
		},
		"[fd00::1]":             {want: Host{Name: "fd00::1", Port: 22}},
		"[fe80::1%25eth0]:2222": {want: Host{Name: "fe80::1%eth0", Port: 2222}},
		"":                      {err: `"" is not a valid host name`},
		"ops@":                  {err: `"" is not a valid host name`},
		"@gpu1":                 {err: `"" is not a valid user name`},
		"gpu1:":                 {err: "port is missing"},
		"gpu1:0":                {err: "port 0"},
		"gpu1:65536":            {err: "port 65536"},
		"gpu1/run/docker.sock":  {err: "a path is not allowed"},
		"ssh://gpu1":            {err: "port is missing"},
		"gpu1?a":                {err: "query and fragment"},
		"gpu1#":                 {err: "query and fragment"},
		"gpu 1":                 {err: "invalid character"},
		"gpu1$(id)":             {err: "is not a valid host name"},
		"-oProxyCommand=x":      {err: "is not a valid host name"},
		"-oProxyCommand=x@gpu1": {err: "is not a valid user name"},
		"[fe80::1%25$(id)]":     {err: "is not a valid network interface"},
		"ops:hunter2@gpu1":      {err: "password can't be part"},
		"ops:hunter2/@gpu1":     {err: "password can't be part"},
	}
	for address, test := range tests {
		t.Run(address, func(t *testing.T) {
			got, err := ParseHost(address)
			if test.err != "" {
				expect(t, err, nil, "SSH host ", test.err, "; use [user@]host[:port]")
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("error shows the password: %v", err)
				}
				return
			}
			must(t, err)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			want := test.string
			if want == "" {
				want = address
			}
			if got.String() != want {
				t.Errorf("prints as %q, want %q", got, want)
			}
		})
	}
}
