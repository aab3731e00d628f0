#!/bin/sh
# Puts what a guest image of a runner needs into the root file system of a Linux with systemd, which is mounted.
#
#   install.sh ROOT RUNNER    RUNNER is the program forgejo-runner, for the guest's processor
set -eu

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

[ $# -eq 2 ] || fail "usage: install.sh ROOT RUNNER"
root=$1
runner=$2
here=$(cd "$(dirname "$0")" && pwd)
[ -d "$root/etc" ] || fail "$root is no root file system: it has no etc"
[ -f "$runner" ] || fail "cannot read $runner: it has to be the program forgejo-runner"

put() { install -D -m "$1" "$2" "$root/$3"; }
put 0755 "$runner" usr/local/bin/forgejo-runner
put 0755 "$here/steading-runner" usr/local/libexec/steading-runner
put 0644 "$here/sysusers.conf" usr/lib/sysusers.d/steading-runner.conf
put 0644 "$here/tmpfiles.conf" usr/lib/tmpfiles.d/steading-runner.conf
put 0644 "$here/steading-runner.service" etc/systemd/system/steading-runner.service
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf ../steading-runner.service "$root/etc/systemd/system/multi-user.target.wants/steading-runner.service"
