//go:build linux

package statedir

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// place is where a test has the state directory state/ with the cluster lab.
type place struct {
	*testing.T
	base string
}

// mallory is another user, and these are groups: root's private group, one that mallory is in, one that does not exist,
// one without members, and another user's group that root is in.
const (
	mallory = 65534
	private = 4000
	shared  = 4001
	unknown = 4002
	empty   = 4003
	primary = 4004
)

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{t, t.TempDir()}
	p.chmod(0o700) // whatever the umask
	return p
}

func (p place) at(elements ...string) string {
	return filepath.Join(append([]string{p.base}, elements...)...)
}

func (p place) mkdir(elements ...string) string {
	p.Helper()
	must(p.T, os.MkdirAll(p.at(elements...), 0o700))
	return p.at(elements...)
}

// chmod sets exactly this mode, whatever the umask.
func (p place) chmod(mode uint32, elements ...string) {
	p.Helper()
	must(p.T, unix.Chmod(p.at(elements...), mode))
}

func (p place) chown(user, group int, elements ...string) {
	p.Helper()
	must(p.T, os.Lchown(p.at(elements...), user, group))
}

func (p place) link(target string, elements ...string) {
	p.Helper()
	must(p.T, os.Symlink(target, p.at(elements...)))
}

// groupWritable creates the folders as with a umask of 002, owned by this group.
func (p place) groupWritable(group int) {
	p.Helper()
	p.mkdir("state", "lab", Specs)
	for _, folder := range []string{"state", "state/lab", "state/lab/" + Specs} {
		p.chown(-1, group, folder)
		p.chmod(0o775, folder)
	}
}

func TestTrust(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make folders of other users")
	}
	type setUp func(p place)
	cases := map[string]struct {
		setUp setUp
		// refused is the path that is not trusted, and why is part of the reason.
		refused, why string
	}{
		"nothing there": {setUp: func(place) {}},
		"as it is made": {setUp: func(p place) { must(p.T, Dir{Root: p.at("state"), Cluster: "lab"}.Create()) }},
		"readable for others": {setUp: func(p place) {
			p.mkdir("state", "lab", Specs)
			p.chmod(0o755, "state", "lab", Specs)
			p.chmod(0o755, "state", "lab")
		}},
		"a link on the way": {setUp: func(p place) {
			p.mkdir("data", "state", "lab", Specs)
			p.link("data/../data/state/", "state")
		}},
		"an absolute link in it": {setUp: func(p place) {
			p.mkdir("state", "lab")
			p.link(p.mkdir("data", "specs"), "state", "lab", Specs)
		}},
		"a link that leads nowhere yet": {setUp: func(p place) { p.link("data", "state") }},
		"umask 002":                     {setUp: func(p place) { p.groupWritable(private) }},
		"a folder for everybody above it": {
			setUp: func(p place) { p.mkdir("state", "lab", Specs); p.chmod(0o1777, "state") },
		},
		"a group's folder for everybody above it": {setUp: func(p place) {
			p.mkdir("state", "lab")
			p.chown(-1, shared, "state")
			p.chmod(0o1770, "state")
		}},

		"another user's root": {
			func(p place) { p.mkdir("state"); p.chown(mallory, -1, "state") }, "state", "belongs to user ",
		},
		"another user's cluster": {
			func(p place) { p.mkdir("state", "lab"); p.chown(mallory, -1, "state", "lab") }, "state/lab",
			"belongs to user ",
		},
		"another user's link": {func(p place) {
			p.mkdir("data")
			p.link("data", "state")
			p.chown(mallory, -1, "state")
		}, "state", "belongs to user "},
		"another user's link to a cluster": {func(p place) {
			p.mkdir("state")
			p.link(p.mkdir("data"), "state", "lab")
			p.chown(mallory, -1, "state", "lab")
		}, "state/lab", "belongs to user "},
		"a link to another user's folder": {func(p place) {
			p.mkdir("data", "state")
			p.link("data/state", "state")
			p.chown(mallory, -1, "data", "state")
		}, "data/state", "belongs to user "},
		"a link through another user's folder": {func(p place) {
			p.mkdir("data", "state")
			p.link("data/state", "state")
			p.chown(mallory, -1, "data")
		}, "data", "belongs to user "},
		"a link to another user's link": {func(p place) {
			p.mkdir("data")
			p.link("next", "state")
			p.link("data", "next")
			p.chown(mallory, -1, "next")
		}, "next", "belongs to user "},
		"a root for everybody": {
			func(p place) { p.mkdir("state"); p.chmod(0o777, "state") }, "state", "(mode 0777, group 0)",
		},
		"a cluster for everybody": {
			func(p place) { p.mkdir("state", "lab"); p.chmod(0o702, "state", "lab") }, "state/lab",
			"(mode 0702, group 0)",
		},
		"a cluster for everybody, sticky": {
			func(p place) { p.mkdir("state", "lab"); p.chmod(0o1777, "state", "lab") }, "state/lab",
			"(mode 01777, group 0)",
		},
		"a folder for everybody, by a link": {func(p place) {
			p.mkdir("state")
			p.link(p.mkdir("data"), "state", "lab")
			p.chmod(0o1777, "data")
		}, "data", "(mode 01777, group 0)"},
		"a group with others": {
			func(p place) { p.groupWritable(shared) }, "state", "(mode 0775, group 4001)",
		},
		"a group that is others' own": {
			func(p place) { p.groupWritable(primary) }, "state", "(mode 0775, group 4004)",
		},
		"a group that nobody knows": {
			func(p place) { p.groupWritable(unknown) }, "state", "(mode 0775, group 4002)",
		},
		"a group without members": {
			func(p place) { p.groupWritable(empty) }, "state", "(mode 0775, group 4003)",
		},
		"links in a circle": {
			func(p place) { p.link("state", "state") }, "state/lab", "too many levels of symbolic links",
		},
		"a file in place of the cluster": {
			func(p place) { write(p.T, p.at("state", "lab"), "") }, "state/lab/" + Documents, "not a directory",
		},
		"an access control list": {func(p place) {
			p.groupWritable(private)
			must(p.T, unix.Setxattr(p.at("state"), "system.posix_acl_access", writableFor(mallory), 0))
		}, "state", "(mode 0775, group 4000)"},
	}
	for _, folder := range folders {
		cases["another user's folder "+folder] = struct {
			setUp        setUp
			refused, why string
		}{func(p place) { p.mkdir("state", "lab", folder); p.chown(mallory, -1, "state", "lab", folder) },
			"state/lab/" + folder, "belongs to user "}
	}
	accounts := t.TempDir()
	who := trust{user: 0, passwd: filepath.Join(accounts, "passwd"), group: filepath.Join(accounts, "group")}
	write(t, who.passwd,
		"root:x:0:4000:root:/root:/bin/sh\nmallory:x:65534:65534::/:\ntoor:x:0:4002::/:\nbob:x:1001:4004::/:\n# a comment\n")
	write(t, who.group, "root:x:4000:\nshared:x:4001:root,mallory\nempty:x:4003:\nbob:x:4004:root\n")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c.setUp(p)
			before := tree(t, p.base)
			err := who.check(Dir{Root: p.at("state"), Cluster: "lab"})
			switch {
			case c.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.refused != "" && (err == nil || !strings.Contains(err.Error()+" ", p.at(c.refused)+" ") &&
				!strings.Contains(err.Error(), p.at(c.refused)+":") || !strings.Contains(err.Error(), c.why)):
				t.Errorf("the error is %v, not about %s: %s", err, p.at(c.refused), c.why)
			}
			if after := tree(t, p.base); fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("%v became %v", before, after)
			}
		})
	}
}

// writableFor returns an access control list that allows one more user to write.
func writableFor(user uint32) []byte {
	const owner, named, group, mask, others, nobody = 0x01, 0x02, 0x04, 0x10, 0x20, 0xffffffff
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range []struct {
		tag, permissions uint16
		id               uint32
	}{{owner, 7, nobody}, {named, 7, user}, {group, 5, nobody}, {mask, 7, nobody}, {others, 5, nobody}} {
		list = binary.LittleEndian.AppendUint16(list, entry.tag)
		list = binary.LittleEndian.AppendUint16(list, entry.permissions)
		list = binary.LittleEndian.AppendUint32(list, entry.id)
	}
	return list
}

// TestCreateTrustsNobody: somebody creates the folder of a cluster after Open and before Create.
func TestCreateTrustsNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make folders of other users")
	}
	p := newPlace(t)
	p.mkdir("state")
	p.chmod(0o1777, "state")
	d, err := Open(p.at("state"), "lab")
	must(t, err)
	p.mkdir("state", "lab")
	p.chown(mallory, mallory, "state", "lab")
	if err := d.Create(); err == nil || !strings.Contains(err.Error(), d.Path()+" belongs to ") {
		t.Errorf("the error is %v", err)
	}
	if made := filesIn(t, d.Path()); len(made) > 0 {
		t.Errorf("in the other user's folder %v were made", made)
	}
}

// TestOpenRelative: a relative path is resolved against the current folder.
func TestOpenRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	must(t, err)
	d, err := Open("state", "lab")
	must(t, err)
	if want := filepath.Join(here, "state", "lab"); d.Path() != want {
		t.Errorf("it is %s, not %s", d.Path(), want)
	}
}
