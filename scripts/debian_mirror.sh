# SPDX-License-Identifier: Apache-2.0
# For scripts that fetch packages of a release of Debian by its name.

# The address of the first source of apt that has Debian's own archive, in either form of such files.
debian_mirror() {
    cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list 2>/dev/null |
        sed -n -E -e 's/^URIs:[[:space:]]*([^[:space:]]+).*/\1/p' \
            -e 's/^deb[[:space:]]+(\[[^]]*\][[:space:]]+)?([^[:space:]]+).*/\2/p' |
        grep -E -m 1 '^https?://.*/debian/?$'
}
