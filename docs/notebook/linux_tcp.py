#!/usr/bin/env python3
"""What the kernel's TCP does when given packets are lost: a second opinion on crates/transports/src/tcp.

This process makes two network namespaces with a TUN device each, and is the wire between them: 50 ms one
way; data packets then cross a link of 2 ms each, one after the other; acknowledgements do not. Segments have
1000 bytes. `--lost 0,4,0` loses the first two copies of segment 0 and the first of segment 4.

Prints a line per event at the sender: ms since the first segment, what happened, `->` and the segments
sent, and the state, window, threshold and timeout (ms) that TCP_INFO then shows. Then a summary: the
segments sent again, the timeouts, how many round trips (102 ms) pass from the first retransmission until
everything sent before it is acknowledged, and the threshold then.

Needs Linux, root and iproute2. Namespaces and devices end with the process.
"""
import argparse
import ctypes
import fcntl
import heapq
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001
MSS, ONE_WAY, SERVICE = 1000, 0.050, 0.002
RTT = 2 * ONE_WAY + SERVICE
STATES = ["open", "disorder", "cwr", "recovery", "loss"]


def namespace(address, peer, args):
    """Put this thread into a new namespace; its TUN device."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        sys.exit("skipped: no permission for network namespaces")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"wire", IFF_TUN_NO_PI))
    for setting in ["tcp_timestamps=0", "tcp_no_metrics_save=1", "tcp_ecn=0", *args.sysctl]:
        key, value = setting.split("=")
        with open(f"/proc/sys/net/ipv4/{key}", "w") as file:
            file.write(value)
    quick = "" if args.delayed_ack else "quickack 1"
    for line in [
        "link set wire mtu 1040 up",
        f"addr add {address}/32 dev wire",
        f"route add {peer}/32 dev wire initcwnd {args.initcwnd} initrwnd 2000 {quick}",
    ]:
        subprocess.run(["ip", *line.split()], check=True)
    return tun


def parse(packet):
    """Of a TCP packet: payload bytes, sequence and acknowledgement numbers, SACK blocks."""
    if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != 6:
        return None
    length, ip = struct.unpack("!H", packet[2:4])[0], (packet[0] & 15) * 4
    seq, ack, offset = struct.unpack("!IIB", packet[ip + 4 : ip + 13])
    header = (offset >> 4) * 4
    options, blocks = packet[ip + 20 : ip + header], []
    while options and options[0] != 0:
        if options[0] == 5:
            blocks = [struct.unpack("!II", options[i : i + 8]) for i in range(2, options[1], 8)]
        options = options[1:] if options[0] == 1 else options[options[1] :]
    return length - ip - header, seq, ack, blocks


class Wire:
    def __init__(self, args, sender_tun, receiver_tun, sender):
        self.args, self.sender = args, sender
        self.sender_tun, self.receiver_tun = sender_tun, receiver_tun
        self.lost = [int(x) for x in args.lost.split(",") if x]
        self.flights, self.count, self.free = [], 0, 0.0
        self.start, self.isn, self.last = None, None, 0.0
        self.lines = []
        self.top, self.again, self.timeouts = 0, [], 0
        self.began, self.until, self.rounds, self.threshold = None, None, None, None

    def info(self):
        raw = self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        words = struct.unpack("8B24I", raw)[8:]
        rto, threshold, cwnd = words[0] // 1000, words[17], words[18]
        return STATES[raw[1]], cwnd, threshold if threshold < 1 << 30 else "-", rto

    def line(self, now, what):
        self.lines.append([f"{(now - self.start) * 1000:.0f} {what}", [], None])

    def segment(self, number):
        return -(-((number - self.isn) & 0xFFFFFFFF) // MSS)

    def from_sender(self, now, packet):
        size, seq, _, _ = parse(packet)
        due = now + ONE_WAY
        if size > 0:
            if self.start is None:
                self.start, self.isn = now, seq
                self.line(now, "start")
            elif now - self.last > 0.02:  # nothing that came has caused it: a timeout, or more data
                self.timeouts += 1
                self.line(now, "timer")
            self.last = now
            segment = self.segment(seq)
            gone = segment in self.lost
            if gone:
                self.lost.remove(segment)
            self.note(now, segment)
            self.lines[-1][1].append(f"{segment}{'x' if gone else ''}")
            self.lines[-1][2] = self.info()
            if gone:
                return
            self.free = due = max(self.free, due) + SERVICE
        self.fly(due, self.receiver_tun, packet)

    def note(self, now, segment):
        if segment < self.top:
            self.again.append(segment)
            if self.began is None:
                self.began, self.until = now, self.top
        self.top = max(self.top, segment + 1)

    def fly(self, due, tun, packet):
        heapq.heappush(self.flights, (due, self.count, tun, packet))
        self.count += 1

    def deliver(self, now):
        _, _, tun, packet = heapq.heappop(self.flights)
        if tun != self.sender_tun or self.start is None:
            os.write(tun, packet)
            return
        _, _, ack, blocks = parse(packet)
        ranges = [f"{self.segment(left)}-{self.segment(right)}" for left, right in blocks]
        self.line(now, " ".join([f"ack {self.segment(ack)}", *(["sack"] if ranges else []), *ranges]))
        self.last = now
        os.write(tun, packet)
        self.lines[-1][2] = self.info()
        if self.until is not None and self.rounds is None and self.segment(ack) >= self.until:
            self.rounds, self.threshold = (now - self.began) / RTT, self.info()[2]

    def run(self):
        limit = time.monotonic() + self.args.seconds
        while (now := time.monotonic()) < limit:
            due = min(limit, self.flights[0][0]) if self.flights else limit
            ready, _, _ = select.select([self.sender_tun, self.receiver_tun], [], [], max(due - now, 0))
            for tun in ready:
                packet = os.read(tun, 4096)
                if parse(packet) is None:
                    continue  # IPv6's own
                if tun == self.sender_tun:
                    self.from_sender(time.monotonic(), packet)
                else:
                    self.fly(time.monotonic() + ONE_WAY, self.sender_tun, packet)
            if not ready and self.flights and self.flights[0][0] <= time.monotonic():
                self.deliver(time.monotonic())

    def report(self):
        for what, sent, (state, cwnd, threshold, rto) in self.lines[: self.args.lines]:
            sent = " ".join(["", "->", *sent]) if sent else ""
            print(f"{what}{sent} [{state}: {cwnd}, {threshold}; {rto}]")
        rounds = f"{self.rounds:.2f}" if self.rounds else "-"
        again = " ".join(map(str, self.again))
        print(f"again {again}; timeouts {self.timeouts}; round trips {rounds}; threshold {self.threshold}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lost", default="", help="segments, once for each copy")
    parser.add_argument("--segments", type=int, default=60, help="how many are sent")
    parser.add_argument("--initcwnd", type=int, default=8)
    parser.add_argument("--cc", default="reno", help="congestion control")
    parser.add_argument("--delayed-ack", action="store_true")
    parser.add_argument("--pause", type=float, default=0, help="send as many again, so many seconds later")
    parser.add_argument("--sysctl", action="append", default=[], help="net.ipv4 key=value")
    parser.add_argument("--seconds", type=float, default=3, help="how long to watch")
    parser.add_argument("--lines", type=int, default=40, help="how many events to print")
    args = parser.parse_args()
    sender_tun = namespace("10.9.0.1", "10.9.0.2", args)
    sender = socket.socket()
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, args.cc.encode())
    receiver_tun = namespace("10.9.0.2", "10.9.0.1", args)
    receiver = socket.create_server(("10.9.0.2", 5000))

    def receive():
        connection, _ = receiver.accept()
        while connection.recv(1 << 16):
            pass

    def send():
        sender.connect(("10.9.0.2", 5000))
        sender.sendall(bytes(MSS * args.segments))
        if args.pause:
            time.sleep(args.pause)
            sender.sendall(bytes(MSS * args.segments))

    for job in (receive, send):
        threading.Thread(target=job, daemon=True).start()
    wire = Wire(args, sender_tun, receiver_tun, sender)
    wire.run()
    wire.report()


if __name__ == "__main__":
    main()
