#!/bin/sh
# Installs the gatewright program of a release for one user: downloads the archive for this machine, verifies its checksum, and
# puts the program into ~/.local/bin. It needs no root, and replaces an installed version. A release has this script with its address:
#   curl --proto '=https' --tlsv1.2 -fsSL https://github.com/OWNER/NAME/releases/latest/download/install.sh | sh
#   curl … | sh -s -- --version 0.1.0
set -eu

# The release workflow fills in both: where the releases are, and the version of this one.
releases=
version=

# What archives exist; see bindings-node/platforms.json.
SYSTEMS='Linux on x86_64 and aarch64 (glibc from 2.17 on, or musl), macOS on x86_64 and arm64, and Windows on x86_64'
# Several times the size of an archive, in bytes.
MAX_DOWNLOAD=200000000
MAX_SECONDS=900

usage() {
  cat <<'END'
Installs the gatewright program for this user.

Usage: install.sh [--version VERSION] [--help]

  --version VERSION        this version, instead of that of the release the script comes from

  GATEWRIGHT_INSTALL_DIR   folder for the program, instead of ~/.local/bin
  GATEWRIGHT_INSTALL_FROM  address of the releases, such as that of a mirror: it has a folder vVERSION for each

Manual pages and completions are put into ../share, if the folder is called bin.
END
}

fail() {
  echo "gatewright is not installed: $*" >&2
  exit 1
}

need() {
  command -v "$1" >/dev/null 2>&1 || fail "this script needs $1"
}

# Sets `target`.
find_target() {
  system=$(uname -s)
  processor=$(uname -m)
  case $processor in
  x86_64 | amd64) processor=x86_64 ;;
  aarch64 | arm64) processor=aarch64 ;;
  *) processor="unknown $processor" ;;
  esac
  case $system-$processor in
  *-unknown*) no_archive ;;
  Linux-*)
    # A system of 32 bits on a kernel of 64 bits.
    [ "$(getconf LONG_BIT 2>/dev/null || echo 64)" = 64 ] || no_archive
    if has_musl; then target=$processor-unknown-linux-musl; else target=$processor-unknown-linux-gnu; fi
    ;;
  Darwin-*)
    # A shell under Rosetta sees another processor.
    if [ "$(sysctl -n hw.optional.arm64 2>/dev/null || echo 0)" = 1 ]; then processor=aarch64; fi
    target=$processor-apple-darwin
    ;;
  MINGW*-* | MSYS*-* | CYGWIN*-*)
    fail "on Windows, download and unpack gatewright-$version-x86_64-pc-windows-msvc.zip of the release ($place)"
    ;;
  *) no_archive ;;
  esac
}

no_archive() {
  fail "releases have archives for $SYSTEMS. This machine has $(uname -s) on $(uname -m):" \
    "build the program with \`cargo install gatewright-cli\`"
}

has_musl() {
  if command -v ldd >/dev/null 2>&1; then
    # musl's prints its name and fails.
    { ldd --version 2>&1 || true; } | grep -qi musl
  else
    ls /lib/ld-musl-* >/dev/null 2>&1
  fi
}

# fetch URL FILE [ADVICE]
fetch() {
  # Redirects may not leave the scheme.
  curl --proto "=$scheme" --tlsv1.2 --fail --silent --show-error --location --retry 3 --connect-timeout 20 \
    --max-time "$MAX_SECONDS" --max-filesize "$MAX_DOWNLOAD" --output "$2" "$1" ||
    fail "the download of $1 has failed${3:-}"
}

# sum_of FILE
sum_of() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum <"$1"
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 <"$1"
  elif command -v openssl >/dev/null 2>&1; then
    openssl dgst -sha256 -r <"$1"
  else
    fail 'this script needs sha256sum, shasum or openssl to verify what it downloads'
  fi
}

# put FILE FOLDER NAME: replaces a file in one step, so that it works while the old one is in use.
put() {
  mkdir -p "$2"
  cp "$1" "$2/.$3.new"
  mv -f "$2/.$3.new" "$2/$3"
}

main() {
  while [ "$#" -gt 0 ]; do
    case $1 in
    --version)
      [ "$#" -ge 2 ] || fail '--version needs a version, such as 0.1.0'
      version=$2
      shift
      ;;
    --version=*) version=${1#*=} ;;
    -h | --help)
      usage
      return
      ;;
    *) fail "there is no option $1; --help lists them" ;;
    esac
    shift
  done

  releases=${GATEWRIGHT_INSTALL_FROM:-$releases}
  [ -n "$releases" ] ||
    fail 'this copy of the script does not know where releases are: take that of a release, or set GATEWRIGHT_INSTALL_FROM'
  case $releases in
  *@*) fail "$releases: an address has no @" ;;
  https://*) scheme=https ;;
  # Nobody else is between this machine and itself.
  http://127.0.0.1[:/]* | http://localhost[:/]*) scheme=http ;;
  *) fail "$releases: an address must begin with https://" ;;
  esac
  version=${version#v}
  case $version in
  '') fail 'which version? --version names it, such as --version 0.1.0' ;;
  *[!0-9A-Za-z.+-]* | [!0-9]*) fail "$version is not a version, such as 0.1.0" ;;
  esac
  place=${releases%/}/v$version

  bin=${GATEWRIGHT_INSTALL_DIR:-}
  if [ -z "$bin" ]; then
    [ -n "${HOME:-}" ] || fail 'HOME is not set: set GATEWRIGHT_INSTALL_DIR to the folder for the program'
    bin=$HOME/.local/bin
  fi
  for tool in curl tar uname mktemp awk; do need "$tool"; done
  find_target
  mkdir -p "$bin" 2>/dev/null || fail "the folder $bin cannot be made: set GATEWRIGHT_INSTALL_DIR to one of yours"
  bin=$(cd "$bin" && pwd)
  [ ! -d "$bin/gatewright" ] || fail "$bin/gatewright is a folder"

  # In the same place, because /tmp may not allow programs.
  work=$(mktemp -d "$bin/.gatewright.XXXXXX" 2>/dev/null) ||
    fail "files cannot be written to $bin: set GATEWRIGHT_INSTALL_DIR to a folder of yours"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM

  name=gatewright-$version-$target
  archive=$name.tar.gz
  fetch "$place/SHA256SUMS" "$work/SHA256SUMS" ". Is there a release $version?"
  wanted=$(awk -v name="$archive" '$2 == name || $2 == "*" name { print $1 }' "$work/SHA256SUMS")
  case $wanted in
  '') fail "release $version has no $archive ($place/SHA256SUMS does not list it)" ;;
  *[!0-9a-f]*) fail "$place/SHA256SUMS has no valid checksum of $archive" ;;
  esac
  echo "downloading $place/$archive"
  fetch "$place/$archive" "$work/$archive"
  found=$(sum_of "$work/$archive")
  found=${found%% *}
  [ "$found" = "$wanted" ] ||
    fail "the checksum of $archive is wrong: it is $found, and should be $wanted. Nothing was unpacked"

  tar -xzof "$work/$archive" -C "$work" || fail "$archive cannot be unpacked"
  program=$work/$name/gatewright
  reported=$("$program" --version 2>&1) || fail "the program does not run on this machine: $reported"
  [ "$reported" = "gatewright $version" ] || fail "$archive should contain version $version, and says: $reported"
  put "$program" "$bin" gatewright

  # Where man and the shells look for what belongs to the programs of a folder `bin`.
  case $bin in
  */bin)
    share=${bin%/bin}/share
    for page in "$work/$name"/man/*.1; do put "$page" "$share/man/man1" "${page##*/}"; done
    completions=$work/$name/completions
    put "$completions/gatewright" "$share/bash-completion/completions" gatewright
    put "$completions/_gatewright" "$share/zsh/site-functions" _gatewright
    put "$completions/gatewright.fish" "$share/fish/vendor_completions.d" gatewright.fish
    ;;
  esac

  echo "gatewright $version is installed: $bin/gatewright"
  first=$(command -v gatewright || true)
  case $first in
  "$bin/gatewright") ;;
  '')
    echo 'Your shell does not find it yet:'
    echo "  export PATH=\"$bin:\$PATH\""
    ;;
  *) echo "Your shell finds another one first: $first" ;;
  esac
}

# Last: of a script that arrives only in part, nothing runs.
main "$@"
