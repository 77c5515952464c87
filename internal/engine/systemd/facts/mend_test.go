package facts

import "testing"

// TestFamily: a system is managed as the one that it is, or is like.
func TestFamily(t *testing.T) {
	for _, test := range []struct {
		ids             []string
		family, install string
	}{
		{[]string{"ubuntu", "debian"}, "ubuntu", "apt-get install -y a b"},
		{[]string{"raspbian", "debian"}, "debian", "apt-get install -y a b"},
		{[]string{"rocky", "rhel", "centos", "fedora"}, "rhel", "dnf install -y a b"},
		{[]string{"amzn", "fedora"}, "amzn", "yum install -y a b"},
		{[]string{"plan9"}, "", "apt-get install -y a b"},
		{nil, "", "apt-get install -y a b"},
	} {
		f := Facts{OS: OS{IDs: test.ids}}
		if f.Family() != test.family || f.Install("a", "b") != test.install {
			t.Errorf("%q is %q: %s", test.ids, f.Family(), f.Install("a", "b"))
		}
	}
}

// TestLack: what is said of a lack has what to do, where there is anything.
func TestLack(t *testing.T) {
	for want, lack := range map[string]Lack{
		"has none":                  {Found: "has none"},
		"has none. Use another":     {Found: "has none", Advice: "Use another"},
		"has none. Make one: mk it": {Found: "has none", Advice: "Make one", Command: "mk it"},
	} {
		if lack.String() != want {
			t.Errorf("%+v is %q", lack, lack.String())
		}
	}
}
