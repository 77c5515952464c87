# Records how a member's command ended, before its control group goes. The last line makes the record complete.
# $1: the record, which is there already and as long as it will be: so a full disk is no hindrance.
read -r how <"$1"
kills=0 ooms= group=
while IFS=: read -r _ controllers path; do
	case ,$controllers, in
	,name=systemd,) group=$path counts= ;;
	*,memory,*) counts=/sys/fs/cgroup/memory$path/memory.oom_control ;;
	,,) counts=/sys/fs/cgroup$path/memory.events group=${group:-$path} ;;
	*) counts= ;;
	esac
	[ -r "$counts" ] || continue
	while read -r key count; do
		case $key in
		oom_kill) kills=$count ;;
		oom) ooms=$count ;;
		esac
	done <"$counts"
done </proc/self/cgroup
printf '%s\nresult=%s\ncode=%s\nstatus=%s\noom_kills=%s\nooms=%s\ngroup=%s\ncomplete\n' \
	"$how" "$SERVICE_RESULT" "$EXIT_CODE" "$EXIT_STATUS" "$kills" "$ooms" "$group" 1<>"$1"
