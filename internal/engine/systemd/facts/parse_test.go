package facts

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

const (
	someMachine = "3d1219c7c4c5404aaa1f6d2a48adfda4"
	someBoot    = "bd3ce464-2bb7-4f44-81a9-828529dee982"
	someDigest  = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	someKey     = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILy3LhpBJ1sT9rP4ZQwOtm9TqDb7bSPVZcJsWfBuSgIs"
)

// full is the answer of a host with everything, after output of the user's shell.
const full = `Welcome!
facts=no
facts=begin
user=ops
user_id=1000
root=0
hostname=gpu1
machine_id=` + someMachine + `
boot_id=` + someBoot + `
machine=x86_64
kernel=6.1.0-28-amd64
os=PRETTY_NAME="Ubuntu 24.04.1 LTS"
os=ID=ubuntu
os=ID_LIKE="debian"
init=systemd
systemd_runs=yes
systemd=systemd 255 (255.4-1ubuntu8.4)
glibc=glibc 2.39
ldd=ldd (Ubuntu GLIBC 2.39-0ubuntu8.3) 2.39
loader=/lib64/ld-linux-x86-64.so.2
cpus=64
memory=MemTotal:       528165332 kB
python=Python 3.12.3
selinux=1
lacks=gzip
control_groups=2
controllers=cpuset cpu io memory hugetlb pids rdma misc
home=/data/my disk/trainyard
writable=yes
free=/dev/mapper/vg 0-data  264212084 45259404  50241860      48% /data/my disk
mount=/data/my\040disk rw,nosuid,noexec,relatime
program=1234 ` + someDigest + `/trainyard
cluster=lab
cluster=lost+found
port=0016
port=1F90
port=0016
address=fd00::2
address=10.0.0.5
address=::1
address=169.254.3.4
host_key=` + someKey + `
host_key=ssh-ed25519 AAAA
nvidia=NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder@U16)
nvidia_smi=yes
nvidia_toolkit=yes
docker_socket=/run/docker.sock
docker="Version":"26.1.3"
clock=1795528745.310906447
facts=end
logout
`

func fullFacts() Facts {
	return Facts{
		User: "ops", UserID: 1000, Root: true,
		Hostname: "gpu1", MachineID: someMachine, BootID: someBoot,
		Machine: "x86_64", Architecture: "amd64", Kernel: "6.1.0-28-amd64",
		OS:   OS{Name: "Ubuntu 24.04.1 LTS", IDs: []string{"ubuntu", "debian"}},
		Init: "systemd", Systemd: 255, SystemdRuns: true,
		ControlGroups: ControlGroups2, Controllers: []string{
			"cpu", "cpuset", "hugetlb", "io", "memory", "misc", "pids", "rdma",
		},
		SELinux: true, Glibc: "2.39", Loaders: []string{"/lib64/ld-linux-x86-64.so.2"}, Python: "3.12.3",
		Lacks:    []string{"gzip"},
		Capacity: domain.Capacity{CPUs: 64, MemoryMiB: 515786},
		Home: Home{
			Folder: "/data/my disk/trainyard", FreeBytes: 50241860 << 10, Writable: true,
			Mount: "/data/my disk", MountOptions: []string{"rw", "nosuid", "noexec", "relatime"},
		},
		Programs: []Program{{Digest: someDigest, Name: "trainyard", Bytes: 1234}},
		Clusters: []string{"lab"},
		Ports:    []uint16{22, 8080}, Addresses: []string{"10.0.0.5", "fd00::2"}, HostKeys: []string{someKey},
		NVIDIA: NVIDIA{Driver: "560.35.03", SMI: true, Toolkit: true},
		Docker: Docker{Socket: "/run/docker.sock", Version: "26.1.3"},
		Clock:  time.Unix(1795528745, 310906447),
	}
}

func TestParse(t *testing.T) {
	begun := func(lines string) string { return "facts=begin\n" + lines + "facts=end\n" }
	none := Facts{UserID: -1}
	with := func(change func(*Facts)) Facts {
		f := none
		change(&f)
		return f
	}
	for name, test := range map[string]struct {
		output string
		want   Facts
	}{
		"everything":   {full, fullFacts()},
		"lines of DOS": {strings.ReplaceAll(full, "\n", "\r\n"), fullFacts()},
		"nothing":      {begun(""), none},
		"the last of two": {
			"facts=begin\nuser=a\nroot=0\nfacts=begin\nuser=b\nfacts=end\nuser=c\n",
			with(func(f *Facts) { f.User = "b" }),
		},
		"no sudo": {
			begun("refusal=sudo: a password is required\nroot=1000\n"),
			with(func(f *Facts) { f.Refusal = "a password is required" }),
		},
		"musl":         {begun("glibc=\nldd=musl libc (x86_64)\n"), none},
		"glibc by ldd": {begun("ldd=ldd (GNU libc) 2.34\n"), with(func(f *Facts) { f.Glibc = "2.34" })},
		"glibc by Debian's ldd": {
			begun("ldd=ldd (Debian GLIBC 2.36-9+deb12u9) 2.36\n"), with(func(f *Facts) { f.Glibc = "2.36" }),
		},
		"an old date": {
			begun("clock=1795528745.%N\n"), with(func(f *Facts) { f.Clock = time.Unix(1795528745, 0) }),
		},
		"no clock":           {begun("clock=now\n"), none},
		"an unknown machine": {begun("machine=vax\n"), with(func(f *Facts) { f.Machine = "vax" })},
		"a silent Engine": {
			begun("docker_socket=/run/docker.sock\ndocker=silent\n"),
			with(func(f *Facts) { f.Docker = Docker{Socket: "/run/docker.sock", Silent: true} }),
		},
		"a driver by /sys": {
			begun("nvidia=535.183.01\n"), with(func(f *Facts) { f.NVIDIA.Driver = "535.183.01" }),
		},
		"numbers that are none": {
			begun(
				"user_id=-5\ncpus=many\nmemory=MemTotal: 99999999999999999999 kB\nfree=x -1 y\nsystemd=systemd v2\nport=FFFFF\nport=0\n",
			),
			none,
		},
		"groups that are none": {begun("control_groups=3\n"), none},
		"programs that are none": {
			begun("program=1 abc/trainyard\nprogram=1 " + someDigest + "/../x\nprogram=1 " + someDigest +
				"/.upload.x\nprogram=\n"),
			none,
		},
		"IDs that are none": {begun("machine_id=uninitialized\nboot_id=" + strings.Repeat("x", 36) + "\n"), none},
		"what moves the cursor": {
			begun("hostname=gpu\x1b[2J1\u202e\xff\n"), with(func(f *Facts) { f.Hostname = "gpu[2J1" }),
		},
		"a long value": {
			begun("hostname=" + strings.Repeat("é", mostValue) + "\n"),
			with(func(f *Facts) { f.Hostname = strings.Repeat("é", (mostValue-len("hostname="))/2) }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(test.output))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseFails(t *testing.T) {
	for output, want := range map[string]string{
		"":                                      `it printed ""`,
		"This account is not available.\n":      `"This account is not available."; check that the user's login shell runs commands`,
		"facts=end\n":                           "not a shell",
		"facts=begin\nuser=ops\nhostname=gpu\n": `its answer broke off after "hostname=gpu"`,
	} {
		if _, err := Parse([]byte(output)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q", output, err, want)
		}
	}
}

// FuzzParse: whatever a host answers, what is kept of it is bounded, printable, and checked.
func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("facts=begin\n" + strings.Repeat("port=1F90\n", 100) + "mount=\\040 \nfacts=end"))
	f.Fuzz(func(t *testing.T, output []byte) {
		facts, err := Parse(output)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("the error can't be printed: %q", err)
			}
			return
		}
		for _, text := range []string{
			facts.User, facts.Hostname, facts.OS.Name, facts.Home.Folder, facts.Docker.Socket, facts.Refusal,
		} {
			if len(text) > mostValue || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q is kept", text)
			}
		}
		_ = CheckAll(map[string]Facts{"a": facts, "b": facts}, []string{"amd64"})
	})
}

func TestTooMany(t *testing.T) {
	f, err := Parse([]byte("facts=begin\n" + strings.Repeat("cluster=lab\n", 2*mostItems) + "facts=end\n"))
	if err != nil || len(f.Clusters) != mostItems {
		t.Errorf("%d clusters are kept: %v", len(f.Clusters), err)
	}
}
