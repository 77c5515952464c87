# Runs one instance of a member and leaves its exit code behind, whoever may have died in the meantime.
# $1: where to leave the exit code; $2: files to write the process id to, to join a group with limits; then the command.
# The stop signals are the member's: with a trap this shell outlives them, and its child gets their defaults.
trap : TERM INT HUP QUIT USR1 USR2
exit_file=$1
for group in $2; do
	echo $$ >"$group" || exit 126
done
shift 2
"$@"
code=$?
echo "$code" >"$exit_file"
exit "$code"
