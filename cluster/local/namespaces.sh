#!/bin/sh
# Holds the namespaces that a real node lives in: mounts, network and processes. They end with this process, however it ends,
# and with them every container, mount, address and packet filter rule: nothing of the machine's own is touched.
#
#   namespaces.sh FOLDER LINK HOST NODE ALL PODS
#
# FOLDER is where the node keeps everything; inside it is at /mnt, so that paths are short. LINK is the interface on the
# machine's side, with address HOST, of the wire to the node, whose address is NODE. ALL is the network of both, and of pods
# and services, PODS that of pods.
set -eu

if [ "$1" != inside ]; then
  rm -f "$1/up"
  echo $$ >"$1/pid" # exec keeps it, so that others find the namespaces.
  exec 3</proc/self/ns/net
  exec unshare --mount --net --pid --fork --kill-child --mount-proc -- sh "$0" inside "$@"
fi
shift
folder=$1 link=$2 host=$3 node=$4 all=$5 pods=$6

# Containers see what is mounted later on the node, and the machine does not.
mount --make-rshared /
mount --bind "$folder" /mnt
for d in /run /var/lib /var/log; do mount -t tmpfs -o mode=755 tmpfs "$d"; done
mkdir -p /run/lock
# The kubelet sets these for the whole machine. Let it set a copy.
for f in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  copy=/run/sys-$(echo "$f" | tr / -)
  cat "/proc/sys/$f" >"$copy"
  mount --bind "$copy" "/proc/sys/$f"
done

# The wire. There is no default route: from here nobody gets beyond the machine.
machine() { nsenter --net=/proc/self/fd/3 -- "$@"; }
ip link set lo up
machine ip link delete "$link" 2>/dev/null || true # Of a former life.
ip link add eth0 type veth peer name "$link" netns /proc/self/fd/3
ip address add "$node/30" dev eth0
ip link set eth0 up
machine ip address add "$host/30" dev "$link"
machine ip link set "$link" up
machine ip route add "$all" via "$node"
ip route add "$all" via "$host"
# Whoever calls a pod that is gone is told so at once, and not sent in circles: pods have routes of their own.
ip route add unreachable "$pods"
echo 1 >/proc/sys/net/ipv4/ip_forward

# kube-network-policies judges the first packet of each connection, which it has nftables queue. A kernel may lack that, and
# still have what iptables queues by: these are its rules (pkg/networkpolicy/controller.go, v0.8.0) but for the addresses, since
# it judges packets of pods without policies too. Until it listens, packets pass.
judge() { iptables -w -t mangle -A POSTROUTING "$@"; }
judge -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
judge -m owner --uid-owner 0 -j ACCEPT
judge -s "$pods" -j NFQUEUE --queue-num 98 --queue-bypass
judge -d "$pods" -j NFQUEUE --queue-num 98 --queue-bypass

exec 3<&-
echo up >/mnt/up
# As the first process it is the parent of all that lost theirs, and waits for them too.
trap 'exit 0' TERM
while :; do
  sleep 86400 &
  wait $! || true
done
