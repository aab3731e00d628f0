#!/bin/sh
# Makes the layer of a container image that KubeVirt takes as a containerDisk: one disk, raw or qcow2, that its launcher may read.
#
#   containerdisk.sh DISK LAYER    LAYER is the tar file that is written
#
# Push it with: crane append --new_layer LAYER --new_tag REGISTRY/NAME:TAG
set -eu

fail() {
  echo "containerdisk.sh: $*" >&2
  exit 1
}

[ $# -eq 2 ] || fail "usage: containerdisk.sh DISK LAYER"
[ -f "$1" ] || fail "cannot read the disk $1"
name=$(basename "$1")
case $name in
*.qcow2 | *.img | *.raw) ;;
*) fail "$name: a disk is called .qcow2, .img or .raw" ;;
esac
# 107 is the user qemu of KubeVirt's launchers.
tar --create --file "$2" --directory "$(dirname "$1")" --owner 107 --group 107 --mode 0440 --mtime @0 --transform 's,^,disk/,' "$name"
