package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

// full is what a host with everything answers.
const full = `Welcome!
details=begin
docker_access=yes
nvidia_device=0000:3b:00.0
nvidia_device=0000:af:00.0
gpu=NVIDIA A40
gpu=NVIDIA A40
docker_installed=yes
docker_package=docker.io
swarm=active
swarm_manager=yes
docker_runtime=nvidia
docker_root=/var/lib/docker
docker_free=/dev/mapper/vg-0  264212084 45259404  50241860      48% /
udp=1F0A
udp=12B5
udp=1F0A
listener=tcp 2377 dockerd docker.service
listener=udp 7946 serf
clock=CanNTP=yes
clock=NTP=yes
clock=NTPSynchronized=no
nfs_mount=/data
nfs_client=yes
nfs_module=no
details=end
`

func TestParseDetails(t *testing.T) {
	for name, test := range map[string]struct {
		output string
		want   Details
	}{
		"everything": {full, Details{
			Devices: []string{"0000:3b:00.0", "0000:af:00.0"}, Models: []string{"NVIDIA A40", "NVIDIA A40"},
			Docker: Docker{
				Installed: true, Package: "docker.io", Access: true, Swarm: "active", Manager: true, Runtime: "nvidia",
				Root: "/var/lib/docker", FreeBytes: 50241860 << 10, Measured: true,
			},
			Listeners: []Listener{{Port{"tcp", 2377}, "dockerd", "docker.service"}, {Port{"udp", 7946}, "serf", ""}},
			UDP:       []uint16{4789, 7946},
			Clock:     Clock{Known: true, NTP: true, Can: true},
			NFS:       NFS{Mounts: []string{"/data"}, Client: true, NoModule: true},
		}},
		"nothing": {"details=begin\ndetails=end\n", Details{}},
		"a driver that fails": {
			"details=begin\nnvidia_smi_fails=No devices were found\ndetails=end\n",
			Details{SMIFails: "No devices were found"},
		},
		"a broken Swarm": {
			"details=begin\nswarm=error\nswarm_error=no such key\ndetails=end\n",
			Details{Docker: Docker{Swarm: "error", SwarmError: "no such key"}},
		},
		"no sense": {
			"details=begin\nlistener=icmp 1 a\nlistener=tcp x a\nlistener=tcp 99999 a\nlistener=tcp 1\nudp=FFFFF\ndocker_free=df: no\ndetails=end\n",
			Details{},
		},
		"a full disk": {
			"details=begin\ndocker_free=/dev/vda 1 1 0 100% /\ndetails=end\n", Details{Docker: Docker{Measured: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse([]byte(test.output))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, output := range []string{"", "details=begin\nudp=1F0A\n", strings.ReplaceAll(full, "details", "facts")} {
		if _, err := parse([]byte(output)); err == nil {
			t.Errorf("%q is taken for an answer", output)
		}
	}
}

// A host may answer what it likes: what is kept of it has a bound, and what is said of it can be printed.
func FuzzParse(f *testing.F) {
	f.Add([]byte("facts=begin\nuser=ops\nuser_id=1000\nports=1\nfacts=end\n" + full))
	f.Add([]byte("details=begin\n" + strings.Repeat("gpu=\x1b[2J\u202e\n",
		100) + "listener=tcp 2377 \xff \x00\ndetails=end"))
	f.Fuzz(func(t *testing.T, output []byte) {
		details, err := parse(output)
		if err != nil {
			return
		}
		if len(details.Models) > most || len(details.Devices) > most || len(details.Listeners) > most ||
			len(details.NFS.Mounts) > most {
			t.Errorf("it is kept: %+v", details)
		}
		host := Host{Details: details, Engines: Engines}
		host.Facts, _ = facts.Parse(output) // nothing is known where that fails
		host.judge(nil)
		for _, f := range reportOf("", host, nil).Checks {
			if strings.ContainsFunc(f.Found+f.Fix, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%+v can't be printed", f)
			}
		}
	})
}

// TestScript: the script needs no more of a shell than all of them have, and becomes another by its arguments.
func TestScript(t *testing.T) {
	needsLinux(t)
	for _, shell := range []string{"/bin/sh", "dash", "bash", "busybox"} {
		t.Run(filepath.Base(shell), func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(err)
			}
			bin := t.TempDir()
			if shell == "busybox" {
				must(t, exec.Command(path, "--install", "-s", bin).Run())
			} else {
				must(t, os.Symlink(path, filepath.Join(bin, "sh")))
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			for _, become := range [][]string{nil, {"env", "BECOME=root"}} {
				command := exec.Command("sh", append([]string{"-s"}, become...)...)
				command.Stdin = strings.NewReader(script)
				output, err := command.Output()
				must(t, err)
				d, err := parse(output)
				if err != nil || d.Docker.Root == "" || !d.Docker.Measured {
					t.Errorf("it is %+v, %v", d, err)
				}
			}
		})
	}
}

// TestScriptAsksPrograms: what the script finds is what the programs of a host say.
func TestScriptAsksPrograms(t *testing.T) {
	needsLinux(t)
	bin := t.TempDir()
	for name, text := range map[string]string{
		"nvidia-smi":  "echo 'NVIDIA A40'; echo 'NVIDIA H100 80GB HBM3'",
		"timedatectl": "printf 'CanNTP=yes\\nNTP=yes\\nNTPSynchronized=yes\\n'",
		"ss": `cat <<END
Netid State  Recv-Q Send-Q Local Address:Port Peer Address:PortProcess
tcp   LISTEN 0      4096               *:2377            *:*    users:(("x",pid=1,fd=21),("y",pid=2,fd=21))
udp   UNCONN 0      0            0.0.0.0:4789      0.0.0.0:*
tcp   LISTEN 0      128          0.0.0.0:22        0.0.0.0:*    users:(("sshd",pid=1,fd=3))
END`,
	} {
		must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700)) //nolint:gosec // it is to be run
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	command := exec.Command("sh", "-s")
	command.Stdin = strings.NewReader(script)
	output, err := command.Output()
	must(t, err)
	d, err := parse(output)
	must(t, err)
	if diff := cmp.Diff([]string{"NVIDIA A40", "NVIDIA H100 80GB HBM3"}, d.Models); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(d.Listeners) != 1 || d.Listeners[0].Port != (Port{"tcp", 2377}) || d.Listeners[0].Process == "" {
		t.Errorf("the listeners are %+v", d.Listeners)
	}
	if d.Clock != (Clock{Known: true, NTP: true, Can: true, Synchronised: true}) {
		t.Errorf("the clock is %+v", d.Clock)
	}
}

func needsLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("hosts run Linux")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
