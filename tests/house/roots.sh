# SPDX-License-Identifier: Apache-2.0
# For the scripts that try Weft in fresh Debian systems: folders that become systems of their own. The script that reads this
# sets `name`, in front of its messages, and stands in the root of the tree.
#
# Needs root, debootstrap, and a mirror that answers: the first of Debian itself in this machine's sources of apt. Says
# why it skips (77) where one is missing. JOBS compilers run at once; IN_FRONT is a command in front of what compiles
# (nice, or a lock). KEEP=1 leaves the systems where they are. ROOT_CCACHE=DIR lends those that compile a cache of ccache's in
# DIR/RELEASE, so that another run takes a part of the time; a copy of this machine's own serves its release of Debian.

skip() { echo "$name: skipped: $*"; exit 77; }

. scripts/debian_mirror.sh
[ "$(id -u)" = 0 ] || skip "needs root (a folder becomes a system of its own)"
command -v debootstrap >/dev/null || skip "no debootstrap (scripts/setup deploy)"
from=$(debian_mirror)
[ -n "$from" ] || skip "no source of apt in /etc/apt has Debian's archive"

# Runs a command inside, in a mount namespace of its own, so that no mount outlives it. Nothing of this environment goes
# in but proxies.
inside() {
    local root=$1; shift
    unshare --mount sh -c 'mount -t proc proc "$0/proc" || exit 1
        [ ! -f "$0/root/ccache" ] || mount --bind "$(cat "$0/root/ccache")" "$0/root/.cache/ccache" || exit 1
        exec chroot "$0" "$@"' "$root" \
        /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        WEFT_THREADS=2 JOBS="${JOBS:-$(nproc)}" \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} "$@"
}

# All that is there, but for the tree, what apt keeps, and folders that come and go.
listing() {
    (cd "$1" && find . -xdev \( -path ./weft -o -path ./proc -o -path ./tmp -o -path ./var -o -path ./root \) -prune \
        -o -print | sort)
}

step() { # step ROOT WHAT COMMAND ...: one line where it works, its last lines where it does not
    local root=$1 what=$2; shift 2
    if "$@" >"$root/log" 2>&1; then echo "$name: $release: $what"; return 0; fi
    tail -n 30 "$root/log" | cut -c 1-400
    echo "$name: $release: $what: FAILED"
    return 1
}

# new_root FOLDER RELEASE: FOLDER/root becomes a minimal system with the tree in /weft.
new_root() {
    local folder=$1 release=$2 root=$1/root
    if ! debootstrap --variant=minbase --include=make "$release" "$root" "$from" >"$folder/debootstrap" 2>&1; then
        # A mirror that does not answer is no fault of the tree.
        tail -n 3 "$folder/debootstrap"
        skip "debootstrap could not make a system of $release"
    fi
    mkdir "$root/weft"
    git ls-files -z --cached --others --exclude-standard |
        xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' _ |
        tar --null -T - -c --owner=0 --group=0 | tar -x -C "$root/weft" || return 1
    step "$folder" "the packages that scripts/setup names" inside "$root" /weft/scripts/setup build || return 1
    [ -n "${ROOT_CCACHE:-}" ] || return 0
    step "$folder" "ccache" inside "$root" apt-get install -y -q --no-install-recommends ccache || return 1
    mkdir -p "$root/root/.cache/ccache" "$ROOT_CCACHE/$release" && echo "$ROOT_CCACHE/$release" >"$root/root/ccache"
}

# in_each FUNCTION RELEASE ...: FUNCTION FOLDER RELEASE for each, and one line about all.
in_each() {
    local check=$1 release code status=0; shift
    work=$(mktemp -d "${TMPDIR:-/tmp}/weft-$name.XXXXXX")
    [ -n "${KEEP:-}" ] || trap 'rm -rf --one-file-system "$work"' EXIT
    for release in "$@"; do
        mkdir "$work/$release"
        ("$check" "$work/$release" "$release")
        code=$?
        [ $code = 0 ] || [ $status = 1 ] || status=$code
        [ $code = 0 ] || [ $code = 77 ] || status=1
        [ -n "${KEEP:-}" ] || rm -rf --one-file-system "${work:?}/$release"
    done
    [ $status != 0 ] || echo "$name: passed: $*"
    return $status
}
