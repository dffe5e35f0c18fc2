# TCP incast in ns-2.35: N senders, a switch and a receiver. Each sender has a part of every block.
# The next block is requested when all parts of the last one are there. Prints one line: blocks
# done, time of the last one (s), goodput (Mb/s), packets dropped at the receiver's port.
#
#   ns incast.tcl [key=value ...]        the keys and their defaults are below
#
# Which of several packets that reach the switch at one instant comes first (`ties`)?
#
#   scheduled   the one that was scheduled first: all links are equal, and ns-2 is left alone
#   drawn       a draw for each packet: delays of senders' links are within 1 ns, drawn all the time
#   none        none come at one instant: delays of senders' links are those of delays.csv

array set opt {
    senders 8
    seconds 5
    seed 1
    block 256
    window 20
    queue 64
    minrto 0.2
    tick 0.01
    delack off
    ties scheduled
    trace none
}
foreach word $argv {
    if {![regexp {^(\w+)=(\S+)$} $word - key value] || ![info exists opt($key)]} {
        puts stderr "unknown: $word"
        exit 2
    }
    set opt($key) $value
}

# Every packet has 1000 bytes of payload and 40 of headers; `block` counts packets of one sender.
Agent/TCP set packetSize_ 1000
# A connection begins with data, not with an empty first packet.
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set window_ $opt(window)
Agent/TCP set minrto_ $opt(minrto)
Agent/TCP set tcpTick_ $opt(tick)
set wire_bytes 1040
# Without that packet, ns-2 sends the first one of a connection without headers.
set first_shorter 40
set rate 1Gb
# The two links that a request crosses.
set request_latency 50e-6

# One-way delay of each sender's link, s: 25 us, or row `sender` and column `seed` of delays.csv.
proc link_delays {ties seed count} {
    if {$ties ne "none"} {
        return [lrepeat $count 25e-6]
    }
    set file [open [file join [file dirname [info script]] delays.csv]]
    set rows [lrange [split [string trim [read $file]] "\n"] 1 end]
    close $file
    set delays {}
    foreach row [lrange $rows 0 [expr {$count - 1}]] {
        lappend delays [expr {[lindex [split $row ,] $seed] * 1e-9}]
    }
    return $delays
}

# New delays for links to the switch. The order of packets on a link stays: they are 8 us apart.
proc draw_delays {lines} {
    foreach line $lines {
        $line set delay_ [expr {25e-6 + 1e-9 * rand()}]
    }
}

# A sender's next packets leave when the acknowledgement of one that has come is there: six to
# eight packets' times later, a packet's time apart. So that each has a draw of its own, a sender
# gets a new one when the fifth to the ninth packet after its own come.
proc packet_came {line} {
    global opt recent
    if {$opt(ties) eq "drawn"} {
        lappend recent $line
        set recent [lrange $recent end-9 end]
        draw_delays [lrange $recent 0 end-5]
    }
}

# A block begins with windows that leave at once, a packet's time apart, until packets come.
proc block_begins {} {
    global ns opt uplinks
    if {$opt(ties) eq "drawn"} {
        draw_delays $uplinks
        for {set k 1} {$k < 20} {incr k} {
            $ns at [expr {[$ns now] + (8 * $k - 4) * 1.04e-6}] [list draw_delays $uplinks]
        }
    }
}

# Two lines of one rate and delay. ns-2 drops at 50 packets by default, also at hosts.
proc connect {a b delay} {
    global ns rate
    $ns duplex-link $a $b $rate ${delay}s DropTail
    $ns queue-limit $a $b 100000
    $ns queue-limit $b $a 100000
}

# The receiving end of one connection, which counts what has come in order.
Class Part -superclass Application

Part instproc recv {bytes} {
    $self instvar missing line
    packet_came $line
    incr missing -$bytes
    if {$missing == 0} {
        part_is_there
    }
}

Part instproc expect {bytes} {
    $self set missing $bytes
}

proc part_is_there {} {
    global ns waiting blocks last_block request_latency
    incr waiting -1
    if {$waiting == 0} {
        incr blocks
        set last_block [$ns now]
        $ns at [expr {$last_block + $request_latency}] request_block
    }
}

# Asks all senders at one instant, in an order drawn for each block.
proc request_block {} {
    global opt draw sources parts waiting wire_bytes first_shorter
    block_begins
    set waiting $opt(senders)
    set left {}
    for {set i 0} {$i < $opt(senders)} {incr i} {
        lappend left $i
        $parts($i) expect [expr {$opt(block) * $wire_bytes - $first_shorter}]
    }
    while {[llength $left] > 0} {
        set k [expr {int([$draw value] * [llength $left])}]
        $sources([lindex $left $k]) send [expr {$opt(block) * 1000}]
        set left [lreplace $left $k $k]
    }
    set first_shorter 0
}

proc report {} {
    global opt blocks last_block port
    set bits [expr {8.0 * $blocks * $opt(senders) * $opt(block) * 1000}]
    set goodput [expr {$blocks > 0 ? $bits / $last_block / 1e6 : 0.0}]
    puts [format "%d %.6f %.3f %d" $blocks $last_block $goodput [$port set pdrops_]]
    exit 0
}

set ns [new Simulator]
if {$opt(trace) ne "none"} {
    $ns trace-all [open $opt(trace) w]
}
set generator [new RNG]
$generator seed $opt(seed)
set draw [new RandomVariable/Uniform]
$draw use-rng $generator

set switch [$ns node]
set receiver [$ns node]
connect $switch $receiver 25e-6
$ns queue-limit $switch $receiver $opt(queue)
set port [$ns monitor-queue $switch $receiver ""]

set i 0
foreach delay [link_delays $opt(ties) $opt(seed) $opt(senders)] {
    set host [$ns node]
    connect $host $switch $delay
    set tcp [new Agent/TCP/Newreno]
    if {$opt(delack) eq "off"} {
        set sink [new Agent/TCPSink]
    } else {
        set sink [new Agent/TCPSink/DelAck]
        $sink set interval_ $opt(delack)
    }
    $ns attach-agent $host $tcp
    $ns attach-agent $receiver $sink
    $ns connect $tcp $sink
    set sources($i) [new Application/FTP]
    $sources($i) attach-agent $tcp
    set parts($i) [new Part]
    $parts($i) attach-agent $sink
    set line [[$ns link $host $switch] link]
    $parts($i) set line $line
    $parts($i) start
    lappend uplinks $line
    incr i
}

set recent {}
expr {srand($opt(seed))}
set blocks 0
set last_block 0
$ns at 0 request_block
$ns at $opt(seconds) report
$ns run
