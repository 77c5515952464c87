# Prints what facts.sh leaves out of this host, as lines key=value between details=begin and details=end. Its arguments
# are what commands are run as root with, such as sudo -n; none for what this user may see. It changes nothing, writes
# no file, and needs nothing but a POSIX shell. Functions keep commands from reading the rest of it as their input.

main() {
	printf 'details=begin\n'
	for socket in /run/docker.sock /var/run/docker.sock; do
		if [ -r $socket ] && [ -w $socket ]; then printf 'docker_access=yes\n'; fi
	done
	"$@" sh -s <<'EOT'
export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

nl='
'

# say prints the first line of a value.
say() { printf '%s=%s\n' "$1" "${2%%"$nl"*}"; }

has() { command -v "$1" >/dev/null; }

# within runs what might hang, for so many seconds.
within() { if has timeout; then timeout "$@"; else shift && "$@"; fi; }

gpus() {
	for device in /sys/bus/pci/devices/*; do
		read -r vendor <"$device/vendor" && read -r class <"$device/class" || continue
		case $vendor:$class in 0x10de:0x0300* | 0x10de:0x0302*) say nvidia_device "${device##*/}" ;; esac
	done
	has nvidia-smi || return
	if told=$(within 20 nvidia-smi --query-gpu=name --format=csv,noheader); then
		printf '%s\n' "$told" | while read -r name; do say gpu "$name"; done
	else
		say nvidia_smi_fails "${told:-it ended with status $?}"
	fi
}

# pick prints a text of an Engine's answer, by its name.
pick() { printf %s "$info" | grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }

docker_engine() {
	if file=$(command -v dockerd); then
		say docker_installed yes
		if has dpkg; then
			package=$(dpkg -S "$file") && say docker_package "${package%%:*}"
		elif has rpm; then
			package=$(rpm -qf --qf '%{NAME}' "$file") && say docker_package "$package"
		fi
	fi
	root=/var/lib/docker
	for socket in /run/docker.sock /var/run/docker.sock; do
		[ -S $socket ] || continue
		if has docker; then
			format='"LocalNodeState":"{{.Swarm.LocalNodeState}}","ControlAvailable":{{.Swarm.ControlAvailable}},"Error":{{json .Swarm.Error}},"DefaultRuntime":"{{.DefaultRuntime}}","DockerRootDir":"{{.DockerRootDir}}"'
			info=$(within 20 docker -H unix://$socket info --format "$format") || info=
		elif has curl; then
			info=$(within 20 curl -s --unix-socket $socket http://docker/info)
		fi
		say swarm "$(pick LocalNodeState)"
		case $info in *'"ControlAvailable":true'*) say swarm_manager yes ;; esac
		error=$(pick Error)
		[ -z "$error" ] || say swarm_error "$error"
		say docker_runtime "$(pick DefaultRuntime)"
		picked=$(pick DockerRootDir)
		root=${picked:-$root}
		break
	done
	say docker_root "$root"
	while [ -n "$root" ] && [ ! -d "$root" ]; do root=${root%/*}; done
	say docker_free "$(within 20 df -Pk "${root:-/}" | tail -n 1)"
}

# swarm_ports prints who has the ports that a Swarm needs. Those of the kernel itself have no process.
swarm_ports() {
	for file in /proc/net/udp /proc/net/udp6; do
		while read -r _ local _; do
			case $local in *:1F0A | *:12B5) say udp "${local##*:}" ;; esac
		done <$file
	done
	has ss || return
	ss -lntup | while read -r protocol _ _ _ local _ process; do
		case ${local##*:} in 2377 | 4789 | 7946) ;; *) continue ;; esac
		case $process in *'pid='*) ;; *) continue ;; esac
		pid=${process#*pid=} pid=${pid%%[!0-9]*}
		unit=$(grep -o '[^/]*\.service' "/proc/$pid/cgroup" | tail -n 1)
		say listener "$protocol ${local##*:} $(cat "/proc/$pid/comm") $unit"
	done
}

clock() {
	has timedatectl || return
	within 10 timedatectl show -p NTP -p NTPSynchronized -p CanNTP | while read -r line; do say clock "$line"; done
}

nfs() {
	while read -r device point type _; do
		case $device:$type in '#'*) ;; *:nfs | *:nfs4) say nfs_mount "$point" ;; esac
	done </etc/fstab
	has mount.nfs && say nfs_client yes
	if grep -q 'nfs4*$' /proc/filesystems; then
		say nfs_module yes
	elif has modprobe && [ -d "/lib/modules/$(uname -r)" ]; then
		if modprobe -nq nfs; then say nfs_module yes; else say nfs_module no; fi
	fi
}

details() {
	gpus
	docker_engine
	swarm_ports
	clock
	nfs
	say details end
}
details </dev/null 2>/dev/null
EOT
}
main "$@" </dev/null
