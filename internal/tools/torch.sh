#!/usr/bin/env bash
# Prints the path of a docker-archive of an image with PyTorch, for Docker Engines that reach no registry. It holds what
# examples/pytorch/Dockerfile installs, and is built without Docker, as root, once into the user's cache folder: some
# minutes, and 5 GB of which 1.4 GB stay. Messages go to standard error.
set -euo pipefail

readonly release=bookworm name=pytorch:bookworm
readonly packages=(python3-torch python3-sklearn)

# What programs that run don't need, by its paths in the image.
readonly without=(usr/include usr/lib/gcc usr/lib/libtorch-test usr/share/doc usr/share/locale usr/share/man 'usr/lib/*.a'
  'var/cache/*' 'var/lib/apt/lists/*' 'var/log/*' 'dev/*' 'proc/*' 'sys/*' etc/resolv.conf etc/hostname)

say() { printf '%s\n' "$*" >&2; }

# Another version of this script builds another image.
key=$(sha256sum "$0")
readonly folder=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/images
readonly archive=$folder/pytorch-$release-${key:0:12}.tar

if [[ -f $archive ]]; then
  printf '%s\n' "$archive"
  exit
fi

if ((EUID != 0)); then
  say "Building the image needs root, for debootstrap and chroot; this is user $EUID. Run: make test-torch"
  exit 1
fi
if ! command -v debootstrap >/dev/null; then
  say "Building the image needs debootstrap. Run: apt-get install debootstrap"
  exit 1
fi

mkdir -p "$folder"
# Not /tmp, which may be memory. Nothing is mounted there but in a mount namespace that has ended.
staging=$(mktemp -d "$folder/build.XXXXXX")
trap 'rm -rf --one-file-system "$staging"' EXIT

quietly() {
  "$@" >>"$staging/log" 2>&1 || {
    tail -n 30 "$staging/log" >&2
    say "Cannot build the image: $1 failed, see above."
    exit 1
  }
}

# install_debian ROOT RELEASE PACKAGE…: installs Debian with packages into a folder.
install_debian() {
  local root=$1
  debootstrap --variant=minbase "$2" "$root"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  mount -t proc proc "$root/proc"
  DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install --yes --no-install-recommends "${@:3}"
  chroot "$root" python3 -c 'import sklearn.datasets, torch.distributed as d; assert d.is_gloo_available()'
}
export -f install_debian

# write_archive: a docker-archive of one layer (github.com/moby/docker-image-spec, "combined image JSON + filesystem").
write_archive() {
  local architecture layer id
  architecture=$(chroot "$staging/root" dpkg --print-architecture)
  mkdir "$staging/image"
  tar --create --file "$staging/image/layer.tar" --directory "$staging/root" --numeric-owner --sort=name --wildcards \
    "${without[@]/#/--exclude=./}" .
  layer=$(sha256sum <"$staging/image/layer.tar")
  printf '{"os":"linux","architecture":"%s","created":"1970-01-01T00:00:00Z","config":{"Cmd":["python3"],"Env":["PATH=%s"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$architecture" /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${layer%% *}" >"$staging/config.json"
  id=$(sha256sum <"$staging/config.json")
  mv "$staging/config.json" "$staging/image/${id%% *}.json"
  printf '[{"Config":"%s.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "${id%% *}" "$name" >"$staging/image/manifest.json"
  tar --create --file "$staging/archive.tar" --directory "$staging/image" manifest.json "${id%% *}.json" layer.tar
}

say "Building an image of Debian $release with ${packages[*]} into $folder (once; some minutes)."
quietly unshare --mount bash -euc 'install_debian "$@"' - "$staging/root" "$release" "${packages[@]}"
quietly write_archive
# The archive appears whole or not at all, and takes the place of those that other versions built.
rm -f "$folder"/pytorch-*.tar
mv "$staging/archive.tar" "$archive"
say "The image is built in $SECONDS s: $(numfmt --to=iec "$(stat --format=%s "$archive")")B."
printf '%s\n' "$archive"
