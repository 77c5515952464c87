# Shared by python.sh and kafka.sh, which install something once into the user's cache folder.
shopt -s inherit_errexit # otherwise a failure within $(…) would be ignored

say() { printf '%s\n' "$*" >&2; }

# again COMMAND… repeats a download that fails, as pip does not if a transfer breaks off. A COMMAND must not be a
# function: errexit would be off in it.
again() {
  local pause
  for pause in 10 20; do
    if "$@"; then
      return
    fi
    say "That failed. It is tried again in $pause s."
    sleep "$pause"
  done
  "$@"
}

# once NAME FROM PINS INSTALL prints the folder of NAME, whose content the file PINS determines. If it doesn't exist
# yet, INSTALL FOLDER fetches it FROM a registry. If several processes want it, one installs it while the others wait.
once() {
  local name=$1 from=$2 pins=$3 install=$4 key folder
  key=$(sha256sum <"$pins")
  folder=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/$name-${key:0:12}
  if [[ ! -e $folder/complete ]]; then
    mkdir -p "$(dirname "$folder")"
    (
      flock 9
      [[ ! -e $folder/complete ]] || exit 0
      rm -rf "$folder" # left by an installation that died
      say "Installing $name from $from into $folder (once)."
      "$install" "$folder" >&2
      say "It is installed in $SECONDS s: $(du -sh "$folder" | cut -f 1)."
      touch "$folder/complete"
    ) 9>"$folder.lock"
  fi
  printf '%s\n' "$folder"
}
