//go:build linux

package acceptance

import "fmt"

// left prints what is left of a cluster. systemd may remember a unit without a file until somebody reloads it, which
// does no harm.
const left = `command -v docker >/dev/null &&
  docker ps --all --filter label=trainyard.cluster=%[1]s --format '{{.Names}} {{.Status}}' 2>/dev/null
ls -d /var/lib/trainyard/clusters/%[1]s 2>/dev/null
find /etc/systemd /run/systemd/system /run/systemd/transient \
  -name 'trainyard@%[1]s.service' -o -name 'trainyard-%[1]s-*' 2>/dev/null
systemctl list-units --all --plain --no-legend 'trainyard@%[1]s.service' 'trainyard-%[1]s.slice' 'trainyard-%[1]s-*' |
  grep -v ' inactive *dead '
grep -sE 'trainyard cluster %[1]s$' /root/.ssh/authorized_keys /home/*/.ssh/authorized_keys; :`

// LeftOnHost returns a shell command that prints what is left of a cluster on a bare host: containers, files, units,
// and lines that give its controller access.
func LeftOnHost(cluster string) string { return fmt.Sprintf(left, cluster) }
