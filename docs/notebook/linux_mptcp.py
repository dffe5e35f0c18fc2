#!/usr/bin/env python3
"""What the kernel's MPTCP does when one of two paths fails: a second opinion on crates/transports/src/mptcp.

This process makes two network namespaces with two TUN devices each, and is the two wires between them: 10 ms one
way, data packets then cross a link of 4 Mb/s behind a queue of 50 packets, one after the other; acknowledgements do
not. One message of 4 MB goes over a connection with a subflow on either path. From `--from` seconds on path `--path`
is `--fault` dead (both ways), loses 30 % (of the data packets), or is delayed by 100 ms more.

Prints when the receiver had the message, whether it was whole and in order, the longest time without a byte for the
receiver's application, and of each path: its data packets, those that were lost, that TCP sent again, and that MPTCP
did (new to the path, with data that had been sent before, over either path). Then the kernel's own counters.

Needs Linux 5.19, root and iproute2. Namespaces and devices end with the process.
"""
import argparse
import collections
import ctypes
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import subprocess
import sys
import threading
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001
IPPROTO_MPTCP = 262
ONE_WAY, RATE, QUEUE = 0.010, 4e6 / 8, 50
PORT = 5000
# as linux_tcp.py compares TCP: Reno, without what the simulator does not have
SETTINGS = [
    *["ipv4.tcp_congestion_control=reno", "ipv4.tcp_no_metrics_save=1", "ipv4.tcp_ecn=0", "ipv4.tcp_timestamps=0"],
    *["ipv4.tcp_frto=0", "ipv4.tcp_early_retrans=0", "ipv4.conf.all.rp_filter=0", "mptcp.enabled=1"],
]
COUNTERS = ["MPTCPRetrans", "DuplicateData", "SubflowStale", "SubflowRecover"]


def namespace(commands, args):
    """Put this thread into a new namespace; its TUN devices."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        sys.exit("skipped: no permission for network namespaces")
    tuns = []
    for name in [b"path0", b"path1"]:
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name, IFF_TUN_NO_PI))
        tuns.append(tun)
    for setting in [*SETTINGS, *args.sysctl]:
        key, value = setting.split("=")
        with open(f"/proc/sys/net/{key.replace('.', '/')}", "w") as file:
            file.write(value)
    for line in ["link set path0 up", "link set path1 up", *commands]:
        subprocess.run(["ip", *line.split()], check=True)
    return tuns


def counters(file):
    """Of the namespace in which `file`, /proc/thread-self/net/netstat, was opened."""
    file.seek(0)
    names, values = [line.split() for line in file if line.startswith("MPTcpExt:")]
    found = dict(zip(names, values))
    return " ".join(f"{name} {found.get(name, 0)}" for name in COUNTERS)


def mapping(packet):
    """Of a TCP packet: payload bytes, sequence number, and the mapping if it has one: the data sequence number of
    its first byte, and that byte's number in the subflow, from 1 (RFC 8684, section 3.3)."""
    if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != 6:
        return None
    length, ip = struct.unpack("!H", packet[2:4])[0], (packet[0] & 15) * 4
    header = (packet[ip + 12] >> 4) * 4
    payload = length - ip - header
    options = packet[ip + 20 : ip + header]
    seq = struct.unpack("!I", packet[ip + 4 : ip + 8])[0]
    mapped = None
    while options and options[0] != 0:
        if options[0] == 30 and options[2] >> 4 == 2 and options[3] & 4:
            ack = (8 if options[3] & 2 else 4) if options[3] & 1 else 0
            # of a number of eight bytes the lower four
            at = 4 + ack + (4 if options[3] & 8 else 0)
            mapped = struct.unpack("!II", options[at : at + 8])
        options = options[1:] if options[0] == 1 else options[max(options[1], 1) :]
    return payload, seq, mapped


class Path:
    """A wire with a queue towards the receiver."""

    def __init__(self, number, args):
        self.number, self.args = number, args
        self.free, self.waiting = 0.0, collections.deque()
        self.sent = self.lost = self.again = self.reinjected = 0
        self.mapping, self.isn = None, None
        self.seen = set()  # subflow sequence numbers sent

    def fault(self, since):
        return self.args.fault if self.number == self.args.path and since >= self.args.since else "none"


class Wires:
    def __init__(self, args, sender_tuns, receiver_tuns):
        self.args, self.tuns = args, {}
        self.paths = [Path(0, args), Path(1, args)]
        for path, sender, receiver in zip(self.paths, sender_tuns, receiver_tuns):
            self.tuns[sender] = (path, receiver, True)
            self.tuns[receiver] = (path, sender, False)
        self.flights, self.count, self.start = [], 0, None
        self.random = random.Random(args.seed)
        self.isn, self.late = None, []
        self.carried = bytearray(args.size + 2)  # 1 for each byte of data that has been sent

    def since(self, now):
        return now - self.start if self.start is not None else -1.0

    def forward(self, now, path, packet):
        """When the packet arrives at the receiver, or None."""
        parsed = mapping(packet)
        fault = path.fault(self.since(now))
        if parsed and parsed[0] > 0:
            if self.start is None:
                self.start = now
            self.note(now, path, parsed)
        lost = fault == "dead" or (fault == "lossy" and parsed and parsed[0] > 0 and self.random.random() < 0.3)
        while path.waiting and path.waiting[0] <= now:
            path.waiting.popleft()
        if lost or len(path.waiting) >= QUEUE:
            path.lost += 1
            return None
        path.free = max(path.free, now) + len(packet) / RATE
        path.waiting.append(path.free)
        return path.free + ONE_WAY + (0.1 if fault == "delayed" else 0.0)

    def note(self, now, path, parsed):
        payload, seq, mapping = parsed
        path.sent += 1
        if path.isn is None:
            path.isn = seq - 1
        # one packet's mapping may cover several; the very first ones have none: their data is the subflow's
        path.mapping = mapping or path.mapping
        if self.isn is None and mapping:
            self.isn = mapping[0] - mapping[1]
        data, subflow = path.mapping or (0, 0)
        begin = (seq - path.isn - subflow + data - (self.isn if path.mapping else 0)) & 0xFFFFFFFF
        end = begin + payload
        before = 1 in self.carried[begin:end]
        self.carried[begin:end] = b"\1" * payload
        how = " again" if seq in path.seen else " reinjected" if before else ""
        path.again += how == " again"
        path.reinjected += how == " reinjected"
        path.seen.add(seq)
        if self.args.trace:
            print(f"{self.since(now) * 1000:.1f} path {path.number} {begin}+{payload}{how}")

    def from_tun(self, now, tun, packet):
        if packet[0] >> 4 != 4:
            return  # IPv6's own
        path, to, forward = self.tuns[tun]
        if forward:
            due = self.forward(now, path, packet)
        else:
            due = None if path.fault(self.since(now)) == "dead" else now + ONE_WAY
        if due is not None:
            heapq.heappush(self.flights, (due, self.count, to, packet))
            self.count += 1

    def run(self, done):
        limit = time.monotonic() + self.args.seconds
        while (now := time.monotonic()) < limit and not done.is_set():
            due = min(limit, self.flights[0][0]) if self.flights else min(limit, now + 0.1)
            ready, _, _ = select.select(list(self.tuns), [], [], max(due - now, 0))
            for tun in ready:
                self.from_tun(time.monotonic(), tun, os.read(tun, 4096))
            while self.flights and self.flights[0][0] <= time.monotonic():
                due, _, tun, packet = heapq.heappop(self.flights)
                self.late.append(time.monotonic() - due)
                os.write(tun, packet)


def pattern(size):
    return random.Random(7).randbytes(size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", choices=["none", "dead", "lossy", "delayed"], default="none")
    parser.add_argument("--path", type=int, default=1, help="0: of the first subflow, 1: of the one that joins")
    parser.add_argument("--from", dest="since", type=float, default=1.0, help="seconds after the first byte")
    parser.add_argument("--size", type=int, default=4_000_000, help="bytes of the message")
    parser.add_argument("--receive-buffer", type=int, default=0, help="SO_RCVBUF, bytes")
    parser.add_argument("--sysctl", action="append", default=[], help="net key=value, such as ipv4.tcp_sack=0")
    parser.add_argument("--seed", type=int, default=1, help="of the losses")
    parser.add_argument("--seconds", type=float, default=60, help="how long to wait for the message")
    parser.add_argument("--trace", action="store_true", help="a line for each data packet")
    args = parser.parse_args()

    sender_tuns = namespace(
        [
            "addr add 10.9.0.1/32 dev path0",
            "addr add 10.9.1.1/32 dev path1",
            "route add 10.9.0.2/32 dev path0 metric 1",
            "route add 10.9.0.2/32 dev path1 metric 2",
            "mptcp limits set subflows 1 add_addr_accepted 0",
            "mptcp endpoint add 10.9.1.1 dev path1 subflow",
        ],
        args,
    )
    of_sender = open("/proc/thread-self/net/netstat")
    sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    receiver_tuns = namespace(
        [
            "addr add 10.9.0.2/32 dev path0",
            "route add 10.9.0.1/32 dev path0",
            "route add 10.9.1.1/32 dev path1",
            "mptcp limits set subflows 1 add_addr_accepted 0",
        ],
        args,
    )
    of_receiver = open("/proc/thread-self/net/netstat")
    receiver = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    receiver.bind(("10.9.0.2", PORT))
    if args.receive_buffer:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, args.receive_buffer)
    receiver.listen()
    sent, done, arrivals = pattern(args.size), threading.Event(), []
    received = bytearray()

    def receive():
        connection, _ = receiver.accept()
        while chunk := connection.recv(1 << 20):
            received.extend(chunk)
            arrivals.append((time.monotonic(), len(received)))
            if len(received) >= args.size:
                break
        done.set()

    def send():
        sender.connect(("10.9.0.2", PORT))
        sender.sendall(sent)

    # a thread keeps the namespace that it is started in: this one is the receiver's now, the sender's socket is its own
    for job in (receive, send):
        threading.Thread(target=job, daemon=True).start()
    wires = Wires(args, sender_tuns, receiver_tuns)
    wires.run(done)

    whole = bytes(received) == sent
    times = [at - wires.start for at, _ in arrivals]
    gaps = [(later - before, before) for before, later in zip([0.0, *times], times)]
    gap, at = max(gaps)
    print(f"fault {args.fault} on path {args.path}: whole and in order {whole}, after {times[-1]:.3f} s")
    print(f"longest time without a byte {gap * 1000:.0f} ms, from {at:.3f} s on")
    for path in wires.paths:
        print(
            f"path {path.number}: {path.sent} data packets, {path.lost} lost, "
            f"{path.again} sent again by TCP, {path.reinjected} by MPTCP"
        )
    late = sorted(wires.late)[len(wires.late) * 99 // 100]
    print(f"99 % of the packets less than {late * 1000:.1f} ms late")
    print("sender:", counters(of_sender))
    print("receiver:", counters(of_receiver))


if __name__ == "__main__":
    main()
