# Runs in a member's unit when that is to end, and asks all its processes to; also when the command has ended by itself
# with success: then $MAINPID is empty, and systemd kills what is left.
# $1: the record, which is there already; $2: the number of the signal.
[ -n "$MAINPID" ] || exit 0
echo asked 1<>"$1"
group=
while IFS=: read -r _ controllers path; do
	case $controllers in
	name=systemd) group=/sys/fs/cgroup/systemd$path ;;
	'') group=${group:-/sys/fs/cgroup$path} ;;
	esac
done </proc/self/cgroup
exec 2>/dev/null # it may end meanwhile, which is not for its log
# What is paused would never see the signal alone.
kill -"$2" "$MAINPID"
kill -s CONT "$MAINPID"
while read -r pid; do
	[ "$pid" = "$MAINPID" ] || [ "$pid" = $$ ] || { kill -"$2" "$pid" && kill -s CONT "$pid"; }
done <"$group/cgroup.procs"
exit 0
