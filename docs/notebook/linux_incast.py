#!/usr/bin/env python3
"""Incast with the kernel's TCP: a second opinion on studies/incast, slowed down so that a program can be the wire.

N senders and a receiver, each side in a network namespace of its own. Between them this program is the
network: a star with links of 3 ms, and before the receiver a drop-tail queue of 64 packets of 1040
bytes that its link, 16.64 Mb/s, empties in 0.5 ms each. The receiver asks all senders for 64 000 bytes each,
in a random order, and for the next block when it has everything. Prints N, blocks, goodput in Mb/s, the
share of the link, timeouts and retransmissions of all senders, and how late the wire was, ms.

Needs Linux, root and iproute2. Namespaces and devices end with the process.
"""
import argparse
import heapq
import os
import random
import select
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True
from linux_tcp import MSS, namespace, parse

ONE_WAY, SERVICE, QUEUE, SRU = 0.003, 0.0005, 64, 64_000


class Network:
    def __init__(self, sender_tun, receiver_tun):
        self.sender_tun, self.receiver_tun = sender_tun, receiver_tun
        self.flights, self.count, self.free, self.late = [], 0, 0.0, []

    def fly(self, due, tun, packet):
        heapq.heappush(self.flights, (due, self.count, tun, packet))
        self.count += 1

    def take(self, tun):
        """All packets that wait at a device."""
        for _ in range(256):
            try:
                packet = os.read(tun, 4096)
            except BlockingIOError:
                return
            header = parse(packet)
            if header is None:
                continue
            now = time.monotonic()
            due = now + ONE_WAY
            if tun == self.sender_tun:
                size = header[0] + 40
                if (self.free - due) / SERVICE > QUEUE - 1:
                    continue  # full, the packet in transmission included
                self.free = max(self.free, due) + SERVICE * size / (MSS + 40)
                due = self.free + ONE_WAY
                self.fly(due, self.receiver_tun, packet)
            else:
                self.fly(due + ONE_WAY, self.sender_tun, packet)

    def run(self, until):
        while True:
            now = time.monotonic()
            while self.flights and self.flights[0][0] <= now:
                due, _, tun, packet = heapq.heappop(self.flights)
                self.late.append(now - due)
                os.write(tun, packet)
            due = self.flights[0][0] - now if self.flights else 1.0
            ready, _, _ = select.select([self.sender_tun, self.receiver_tun, until], [], [], max(due, 0))
            if until in ready:
                return
            for tun in ready:
                self.take(tun)


def barrier(senders, listener, seconds):
    """Blocks and time until the last one was whole."""
    for sender in senders:
        sender.setblocking(False)
        sender.connect_ex(("10.9.0.2", 5000))
    receivers = [listener.accept()[0] for _ in senders]
    for end in receivers + senders:
        end.setblocking(False)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    start = time.monotonic()
    blocks, last = 0, start
    while last < start + seconds:
        missing = dict.fromkeys(receivers, SRU)
        for receiver in random.sample(receivers, len(receivers)):
            receiver.send(b"x")
        while missing:
            ready, _, _ = select.select([*missing, *senders], [], [])
            # Requests that have come together are answered in a random order, too.
            for end in random.sample(ready, len(ready)):
                if end in missing:
                    missing[end] -= len(end.recv(1 << 20))
                    if missing[end] == 0:
                        del missing[end]
                else:
                    end.recv(1)
                    assert end.send(bytes(SRU)) == SRU
        blocks, last = blocks + 1, time.monotonic()
    return blocks, last - start


def counters(file):
    """TCP's counters of a namespace."""
    file.seek(0)
    names, values = [line.split()[1:] for line in file if line.startswith("TcpExt")]
    return dict(zip(names, map(int, values)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("senders", type=int)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--cc", default="reno")
    parser.add_argument("--sysctl", action="append", default=[], help="net.ipv4 key=value")
    args = parser.parse_args()
    args.initcwnd, args.delayed_ack = 10, False
    sender_tun = namespace("10.9.0.1", "10.9.0.2", args)
    counted = open("/proc/thread-self/net/netstat")
    senders = [socket.socket() for _ in range(args.senders)]
    for sender in senders:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * SRU)
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, args.cc.encode())
    receiver_tun = namespace("10.9.0.2", "10.9.0.1", args)
    listener = socket.create_server(("10.9.0.2", 5000), backlog=1024)
    result, child_end = os.pipe()
    child = os.fork()
    if child == 0:
        blocks, took = barrier(senders, listener, args.seconds)
        os.write(child_end, struct.pack("Qd", blocks, took))
        time.sleep(60)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    network = Network(sender_tun, receiver_tun)
    network.run(result)
    blocks, took = struct.unpack("Qd", os.read(result, 16))
    mbps = blocks * args.senders * SRU * 8 / took / 1e6
    share = mbps / (MSS * 8 / SERVICE / 1e6)
    now = counters(counted)
    late = sorted(network.late)
    print(
        f"N {args.senders}: {blocks} blocks, {mbps:.2f} Mb/s, {share:.1%}; timeouts {now['TCPTimeouts']}, "
        f"lost retransmissions {now['TCPLostRetransmit']}; late {1000 * late[len(late) // 2]:.2f}, 99 % {1000 * late[len(late) * 99 // 100]:.2f}"
    )
    os.kill(child, 9)


if __name__ == "__main__":
    main()
