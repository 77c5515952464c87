package endpoint

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	long := "/" + strings.Repeat("s", maxSocketPath)
	tests := map[string]struct {
		want   Endpoint
		string string // if it differs from the address
		err    string
	}{
		"unix:///var/run/docker.sock": {want: Endpoint{Scheme: SchemeUnix, Socket: "/var/run/docker.sock"}},
		"unix:///run/a b%20?#.sock":   {want: Endpoint{Scheme: SchemeUnix, Socket: "/run/a b%20?#.sock"}},
		"tcp://gpu1": {
			want: Endpoint{Scheme: SchemeTCP, Host: "gpu1", Port: 2376}, string: "tcp://gpu1:2376",
		},
		"tcp://10.0.0.1:2375/": {
			want: Endpoint{Scheme: SchemeTCP, Host: "10.0.0.1", Port: 2375}, string: "tcp://10.0.0.1:2375",
		},
		"tcp://[fd00::1]:2376": {want: Endpoint{Scheme: SchemeTCP, Host: "fd00::1", Port: 2376}},
		"ssh://gpu1": {
			want: Endpoint{Scheme: SchemeSSH, Host: "gpu1", Port: 22, Socket: DefaultSocket},
		},
		"ssh://gpu1/": {
			want: Endpoint{Scheme: SchemeSSH, Host: "gpu1", Port: 22, Socket: DefaultSocket}, string: "ssh://gpu1",
		},
		"ssh://ops@gpu1.lab:2222": {
			want: Endpoint{Scheme: SchemeSSH, User: "ops", Host: "gpu1.lab", Port: 2222, Socket: DefaultSocket},
		},
		"ssh://ops@gpu1/run/d%20r.sock": {
			want: Endpoint{Scheme: SchemeSSH, User: "ops", Host: "gpu1", Port: 22, Socket: "/run/d r.sock"},
		},
		"ssh://[fd00::1]": {
			want: Endpoint{Scheme: SchemeSSH, Host: "fd00::1", Port: 22, Socket: DefaultSocket},
		},
		"ssh://[fe80::1%25eth0]:2222": {
			want: Endpoint{Scheme: SchemeSSH, Host: "fe80::1%eth0", Port: 2222, Socket: DefaultSocket},
		},
		"ssh://ann%40corp.example@gpu1": {
			want: Endpoint{
				Scheme: SchemeSSH, User: "ann@corp.example", Host: "gpu1", Port: 22, Socket: DefaultSocket,
			},
			string: "ssh://ann%40corp.example@gpu1",
		},
		"":                               {err: "missing scheme"},
		"gpu1:2376":                      {err: "missing scheme"},
		"http://gpu1:2375":               {err: "plain HTTP"},
		"https://gpu1:2376":              {err: "use tcp://"},
		"npipe:////./pipe/docker_engine": {want: Endpoint{Scheme: SchemePipe, Socket: "//./pipe/docker_engine"}},
		"npipe://":                       {err: "must have the form //./pipe/name"},
		"npipe:////./pipe/":              {err: "must have the form"},
		"npipe:////./pipe/a/b":           {err: "must have the form"},
		"npipe:////gpu1/pipe/docker":     {err: "must have the form"},
		"fd://":                          {err: "to listen on"},
		"SSH://gpu1":                     {err: `unknown scheme "SSH"`},
		"unix://run/docker.sock":         {err: "not an absolute file path"},
		"unix://":                        {err: "not an absolute file path"},
		"unix:///run/":                   {err: "not an absolute file path"},
		"unix://" + long:                 {err: "at most 104"},
		"unix:///run/docker\n.sock":      {err: "control characters"},
		"tcp://":                         {err: `"" is not a valid host name`},
		"tcp://gpu1:":                    {err: "port is missing"},
		"tcp://gpu1:0":                   {err: "port 0"},
		"tcp://gpu1:65536":               {err: "port 65536"},
		"tcp://gpu1:docker":              {err: "invalid port"},
		"tcp://ops@gpu1":                 {err: "user is only allowed with ssh"},
		"tcp://gpu1/v1.44":               {err: "path is only allowed with ssh"},
		"tcp://gpu1?tls=false":           {err: "query and fragment"},
		"tcp://gpu1#":                    {err: "query and fragment"},
		"ssh://ops@":                     {err: `"" is not a valid host name`},
		"ssh://@gpu1":                    {err: `"" is not a valid user name`},
		"ssh://-oProxyCommand=x@gpu1":    {err: "is not a valid user name"},
		"ssh://-oProxyCommand=x":         {err: "is not a valid host name"},
		"ssh://gpu 1":                    {err: "invalid character"},
		"ssh://gpu1$(id)":                {err: "is not a valid host name"},
		"ssh://[fe80::1%25$(id)]":        {err: "is not a valid network interface"},
		"ssh://gpu1/run/docker.sock/":    {err: "not an absolute file path"},
		"ssh://ops:hunter2@gpu1":         {err: "password can't be part"},
		"ssh://ops:hunter2@gpu 1":        {err: "invalid character"},
		"ops:hunter2@gpu1":               {err: "missing scheme"},
		"https://ops:hunter2@gpu1:2376":  {err: "use tcp://"},
	}
	for address, test := range tests {
		t.Run(address, func(t *testing.T) {
			got, err := Parse(address)
			if test.err != "" {
				expect(t, err, nil, test.err, "allowed: unix:///")
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

func FuzzParse(f *testing.F) {
	for _, address := range []string{
		"unix:///var/run/docker.sock", "tcp://gpu1", "tcp://[fd00::1]:2376", "ssh://ops@gpu1:2222/run/docker.sock",
		"ssh://[fe80::1%25eth0]:2222", "http://gpu1", "ssh://ops:secret@gpu1", "ssh://ann%40corp@gpu1/%2f",
	} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		e, err := Parse(address)
		if err != nil {
			return
		}
		again, err := Parse(e.String())
		if err != nil || again != e {
			t.Errorf("%q is %+v, which prints as %q, which is %+v, %v", address, e, e, again, err)
		}
		if strings.HasPrefix(e.Host, "-") || strings.HasPrefix(e.User, "-") ||
			strings.ContainsAny(e.Host+e.User, " '\"`$(;|&<>\n") {
			t.Errorf("%q has more than names in %+v", address, e)
		}
		if remote := e.Scheme != SchemeUnix; remote != (e.Host != "") || remote != (e.Port != 0) {
			t.Errorf("%q is %+v", address, e)
		}
	})
}
