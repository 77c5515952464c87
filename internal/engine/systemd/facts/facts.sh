# Prints what this host is and has, as lines key=value between facts=begin and facts=end. It needs nothing but a POSIX
# shell, runs as any user, and writes no file. Functions keep commands from reading the rest of it as their input.

nl='
'

main() {
	printf 'facts=begin\nuser=%s\nuser_id=%s\n' "$(id -un)" "$(id -u)"
	become=
	if [ "$(id -u)" != 0 ]; then
		if ! command -v sudo >/dev/null; then
			printf 'refusal=there is no sudo\n'
		elif refusal=$(sudo -n sh -c : 2>&1); then
			become='sudo -n'
		else
			printf 'refusal=%s\n' "${refusal##*"$nl"}"
		fi
	fi
	$become sh -s <<'EOF'
export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
unset OMP_NUM_THREADS OMP_THREAD_LIMIT # which nproc heeds

nl='
'

# say prints a fact: the first line of a value.
say() { printf '%s=%s\n' "$1" "${2%%"$nl"*}"; }

has() { command -v "$1" >/dev/null; }

# within runs what might hang, for so many seconds.
within() { if has timeout; then timeout "$@"; else shift && "$@"; fi; }

system() {
	say root "$(id -u)"
	say hostname "$(cat /proc/sys/kernel/hostname)"
	say machine_id "$(cat /etc/machine-id)"
	say boot_id "$(cat /proc/sys/kernel/random/boot_id)"
	say machine "$(uname -m)"
	say kernel "$(uname -r)"
	grep -E '^(PRETTY_NAME|ID|ID_LIKE)=' /etc/os-release | while read -r line; do say os "$line"; done
	say init "$(cat /proc/1/comm)"
	[ -d /run/systemd/system ] && say systemd_runs yes
	say systemd "$(systemctl --version)"
	say glibc "$(getconf GNU_LIBC_VERSION)"
	say ldd "$(ldd --version)"
	for loader in /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.* /lib/ld-musl-*.so.*; do
		[ -e "$loader" ] && say loader "$loader"
	done
	say cpus "$(nproc || getconf _NPROCESSORS_ONLN)"
	say memory "$(grep '^MemTotal:' /proc/meminfo)"
	say python "$(python3 -V)"
	say selinux "$(cat /sys/fs/selinux/enforce)"
	for tool in gzip mktemp sha256sum; do has $tool || say lacks $tool; done
}

control_groups() {
	at=/sys/fs/cgroup
	if [ -f $at/cgroup.controllers ]; then
		say control_groups 2
		say controllers "$(cat $at/cgroup.controllers)"
		return
	fi
	if [ -f $at/unified/cgroup.controllers ]; then
		say control_groups hybrid
		say controllers "$(cat $at/unified/cgroup.controllers)"
	elif grep -q ' cgroup ' /proc/mounts; then
		say control_groups 1
	fi
	for controller in cpu memory; do [ -d $at/$controller ] && say controllers $controller; done
}

disk() {
	place=/var/lib/trainyard
	while [ -n "$place" ] && [ ! -d "$place" ]; do place=${place%/*}; done
	place=$(cd -P "${place:-/}" && pwd)
	say home "$place"
	[ -w "$place" ] && say writable yes
	say free "$(df -Pk "$place" | tail -n 1)"
	# Of the mounts above the place, the innermost counts, and of those at one point, the last.
	longest=0
	while read -r _ _ _ _ point flags _; do
		above=${point%/} # "" for the root
		case $above in *\\*) above=$(printf %b "$above") ;; esac # spaces are written as \040
		case $place/ in
		"$above"/*) if [ ${#above} -ge $longest ]; then longest=${#above} mount="$point $flags"; fi ;;
		esac
	done </proc/self/mountinfo
	say mount "$mount"
	for file in /var/lib/trainyard/bin/*/*; do
		[ -f "$file" ] && [ -x "$file" ] && say program "$(stat -c %s "$file") ${file#/var/lib/trainyard/bin/}"
	done
	for folder in /var/lib/trainyard/clusters/*; do
		[ -d "$folder" ] && say cluster "${folder##*/}"
	done
}

network() {
	grep -h ' 0A ' /proc/net/tcp /proc/net/tcp6 | while read -r _ local _ state _; do
		[ "$state" = 0A ] && say port "${local##*:}"
	done
	if has ip; then
		ip -o addr show scope global | while read -r _ _ _ address _; do say address "${address%%/*}"; done
	else
		for address in $(hostname -I || hostname -i); do say address "$address"; done
	fi
	for file in /etc/ssh/ssh_host_*_key.pub; do
		[ -f "$file" ] && read -r kind key _ <"$file" && say host_key "$kind $key"
	done
}

devices() {
	say nvidia "$(cat /sys/module/nvidia/version || cat /proc/driver/nvidia/version)"
	has nvidia-smi && say nvidia_smi yes
	has nvidia-container-runtime-hook && say nvidia_toolkit yes
	for socket in /run/docker.sock /var/run/docker.sock; do
		[ -S $socket ] || continue
		say docker_socket $socket
		# The first who asks may have it started.
		if has docker; then
			docker=$(within 20 docker -H unix://$socket version --format '{{.Server.Version}}')
		elif has curl; then
			docker=$(within 20 curl -s --unix-socket $socket http://docker/version | grep -o '"Version":"[^"]*"')
		else
			break
		fi
		say docker "${docker:-silent}"
		break
	done
}

facts() {
	system
	control_groups
	disk
	network
	devices
	say clock "$(date +%s.%N)"
	say facts end
}
facts </dev/null 2>/dev/null
EOF
}
main </dev/null
