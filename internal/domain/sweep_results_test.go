package domain

import "testing"

func TestIsLocal(t *testing.T) {
	for at, want := range map[string]bool{
		"results": true, "a/../b": true, ".": true, "./a/": true, "..a": true, `a\b`: true, "con": true, "a:b": true,
		"": false, "..": false, "../a": false, "a/../../b": false, "/a": false, "/": false,
	} {
		if got := IsLocal(at); got != want {
			t.Errorf("%q is local: %t, want %t", at, got, want)
		}
	}
}

func TestOnHost(t *testing.T) {
	bind := func(source, target string) *Mount { return &Mount{Source: source, Target: target} }
	for _, test := range []struct {
		path  string
		mount *Mount
		want  string
	}{
		{"/state/own/m/results", nil, "/state/own/m/results"},
		{"/data/lr/r0", bind("/mnt/nas", "/data"), "/mnt/nas/lr/r0"},
		{"/data/lr/r0/", bind("/mnt/nas/", "/data/"), "/mnt/nas/lr/r0"},
		{"/data", bind("/mnt/nas", "/data"), "/mnt/nas"},
		{"/data/lr", bind("/data", "/data"), "/data/lr"},
		{"/data/lr", &Mount{Type: MountBind, Source: "/a", Target: "/data"}, "/a/lr"},
		{"/data/lr", &Mount{Type: MountVolume, Source: "v", Target: "/data"}, "/data/lr"},
	} {
		if got := (KeptFolder{Path: test.path, Mount: test.mount}).OnHost(); got != test.want {
			t.Errorf("%s in %+v is %s, want %s", test.path, test.mount, got, test.want)
		}
	}
}
