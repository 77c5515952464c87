#!/usr/bin/env bash
# Runs go so that it builds with cgo for glibc 2.31 (Debian 11) and newer, whatever this machine has:
# GOARCH=arm64 cgo.sh build …
#
# The linker takes each function's symbol version from the library that it finds. Here it finds stub libraries with the
# functions in glibc.txt at the versions of glibc 2.31. A missing function is a linker error: add it, with objdump -T of
# such a glibc. Because of the newer crt1.o, an older glibc does not run a program's constructors: Go programs have
# none.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
host=$(go env GOHOSTARCH)
export GOOS=linux GOARCH=${GOARCH:-$host} CGO_ENABLED=1
declare -A gcc=([amd64]=x86_64-linux-gnu-gcc [arm64]=aarch64-linux-gnu-gcc)
declare -A first=([amd64]=GLIBC_2.2.5 [arm64]=GLIBC_2.17)
if [[ -z ${gcc[$GOARCH]:-} ]]; then
  printf 'cgo.sh: hosts are of the architectures %s, and not %s.\n' "${!gcc[*]}" "$GOARCH" >&2
  exit 2
fi
if [[ $GOARCH == "$host" ]]; then
  export CC=${CC:-gcc}
else
  export CC=${gcc[$GOARCH]}
fi
if ! command -v "$CC" >/dev/null; then
  printf 'cgo.sh: there is no %s, the C compiler for %s: apt-get install gcc-%s\n' "$CC" "$GOARCH" "$(tr _ - <<<"${gcc[$GOARCH]%-gcc}")" >&2
  exit 1
fi

key=$(cat "$0" "$here/glibc.txt" | sha256sum)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/glibc-$GOARCH-${key:0:12}

# link SONAME FILE: writes the library of that name into a folder.
link() {
  awk -v library="$1" -v arch="$GOARCH" -v first="${first[$GOARCH]}" -v map="$staging/map" '
    BEGIN { print ".section .note.GNU-stack,\"\",%progbits\n.data" }
    $1 == library {
      version = arch == "amd64" && $3 ? $3 : first
      names[version] = names[version] " " $2 ";"
      kind = $2 == "stderr" ? "object" : "function"
      printf ".globl %s\n.type %s, %%%s\n.size %s, 8\n%s: .zero 8\n", $2, $2, kind, $2, $2
    }
    END { for (version in names) print version " {" names[version] " };" >map }
  ' "$here/glibc.txt" >"$staging/functions.s"
  "$CC" -shared -nostdlib -Wl,-soname,"$1" -Wl,--version-script,"$staging/map" -o "$staging/$2" "$staging/functions.s"
}

if [[ ! -d $folder ]]; then
  mkdir -p "$(dirname "$folder")"
  staging=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$staging"' EXIT
  link libc.so.6 libc.so.6
  link libpthread.so.0 libpthread.so
  link libdl.so.2 libdl.so
  echo "INPUT ( libc.so.6 libc_nonshared.a )" >"$staging/libc.so" # the second, linked statically, is this machine's
  mv -T "$staging" "$folder" 2>/dev/null || [[ -d $folder ]]      # another process was first
fi

# Stack protection and fortified string functions would need more symbols, and there is hardly any C here.
export CGO_CFLAGS="-g -O2 -Wno-deprecated-declarations -fno-stack-protector -U_FORTIFY_SOURCE"
export CGO_LDFLAGS="-L$folder"
# Host and user names are looked up by Go itself, as in programs without cgo.
export GOFLAGS="${GOFLAGS:-} -tags=netgo,osusergo"
exec go "$@"
