#!/usr/bin/env bash
# Seven hosts send to one through a switch of 1 Gb/s, on this machine: NDP over UDP and over AF_XDP through
# a trimming switch, the kernel's TCP through 64 KB of drop-tail, and the simulator. Interleaved rounds; the
# median, least and greatest last completion over the time that the last link needs for all packets.
#
#     benches/incast.sh [ROUNDS]      as root; TRIMLINE and WITNESS name the programs
set -euo pipefail
rounds=${1:-5}
trimline=$(realpath "${TRIMLINE:-target/release/trimline}")
witness=$(realpath "${WITNESS:-target/release/examples/witness}")
scenario=$(realpath scenarios/testbed/incast.toml)
if [ -z "${TRIMLINE_INCAST_INSIDE:-}" ]; then
    first=
    chrt -f 5 true 2> /dev/null && first="chrt -f 5"
    echo "$rounds rounds; load before: $(cut -d' ' -f1-3 /proc/loadavg); $(nproc) cores; ${first:-no priority}"
    # A network namespace may only choose what the machine allows everybody.
    allowed=/proc/sys/net/ipv4/tcp_allowed_congestion_control
    before=$(cat $allowed)
    trap 'echo "$before" > $allowed' EXIT
    echo "$before cubic" > $allowed
    TRIMLINE_INCAST_INSIDE=1 unshare -nm -- $first "$0" "$rounds"
    exit
fi
mount -t tmpfs tmpfs /run
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What NDP takes where $1 says how: sim, or options of `testbed run`. Bytes of messages, of payload.
ndp() {
    local how=$1 size=$2 payload=$3 out=$work/out
    local set=(--set "traffic.size=${size}B" --set "transport.payload=${payload}B")
    rm -rf "$out"
    if [ "$how" = sim ]; then
        "$trimline" run "$scenario" "${set[@]}" --out "$out" --progress never > /dev/null 2>&1
    else
        "$trimline" testbed up "$scenario" --name incast "${set[@]}" > /dev/null
        "$trimline" testbed run "$scenario" --name incast $how "${set[@]}" --out "$out" > /dev/null 2>&1 || true
        "$trimline" testbed down --name incast > /dev/null
    fi
    # Headers are 64 bytes there.
    if ! [ -f "$out/summary.json" ]; then echo unfinished; return; fi
    python3 - "$out/summary.json" "$size" "$payload" <<'PYTHON'
import json, sys
summary, size, payload = json.load(open(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
least = 7 * (size + -(-size // payload) * 64) * 8e-3
done = summary["messages"]["completed"] == 7
print(summary["last_completion_us"] / least if done else "unfinished")
PYTHON
}

kernel() {
    "$witness" "$1" "$2" "$3" 1 | sed -n 's/.*us, //p'
}

for round in $(seq "$rounds"); do
    for size in 100000 1000000; do
        for mtu in 1500 9000; do
            payload=$((mtu == 1500 ? 1436 : 9000))
            { printf '%s\n' "$(ndp "" $size $payload)"; } >> "$work/$size.$mtu.1 NDP over UDP"
            { printf '%s\n' "$(ndp --xdp $size $payload)"; } >> "$work/$size.$mtu.2 NDP over AF_XDP"
            kernel reno $size $mtu >> "$work/$size.$mtu.3 kernel reno"
            kernel cubic $size $mtu >> "$work/$size.$mtu.4 kernel cubic"
            [ "$round" -gt 1 ] || ndp sim $size $payload >> "$work/$size.$mtu.0 NDP, simulator"
        done
    done
done
printf '%-20s %8s %6s %8s %8s %8s\n' "" bytes MTU median least greatest
for file in "$work"/*.*.*; do
    name=${file##*/}
    IFS=. read -r size mtu what <<< "$name"
    sort -g "$file" | awk -v what="${what#* }" -v size="$size" -v mtu="$mtu" \
        '{v[NR]=$1} END {printf "%-20s %8d %6d %8.3f %8.3f %8.3f\n", what, size, mtu, v[int((NR+1)/2)], v[1], v[NR]}'
done
