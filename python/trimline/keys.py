"""Tables of a scenario and their keys, for type checkers and editors.

Made from the definitions of keys by `UPDATE=1 cargo test -p trimline-scenario --test it
python_keys`. `docs/scenario-reference.md` explains them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Union


class TrafficFlow(TypedDict, total=False):
    """One message, from one host to another."""

    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    destination: int
    """To whom (another host)."""
    distribution: str
    """Sizes are drawn from a published distribution (below)."""
    distribution_file: str
    """Sizes are drawn from points in a file."""
    every: str
    """The same flows again at this interval, whether or not those before are done (a heartbeat);
    sizes and `start_spread` are drawn anew (above 0; at most 16000000 flows in all)."""
    kind: Literal["flow"]
    """One message, from one host to another."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    priority: int
    """0 is the most urgent; used by NDP's `discipline = "prio"` (0 to 255)."""
    size: str
    """Every message has this size, of `partition-aggregate` every answer of a worker.
    `"unbounded"` (the first five kinds): it never ends (1 B to 10^15 B)."""
    source: int
    """Who sends (a host)."""
    start: str
    """When the messages are submitted."""
    start_spread: str
    """Each message is submitted this much later at most, drawn uniformly."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""
    until: str
    """Nothing is submitted at or after this (after `start`)."""


class TrafficPermutation(TypedDict, total=False):
    """Every host sends to one host and receives from one."""

    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    distribution: str
    """Sizes are drawn from a published distribution (below)."""
    distribution_file: str
    """Sizes are drawn from points in a file."""
    every: str
    """The same flows again at this interval, whether or not those before are done (a heartbeat);
    sizes and `start_spread` are drawn anew (above 0; at most 16000000 flows in all)."""
    hosts: Union[str, int]
    """Among whom (at least 2)."""
    kind: Literal["permutation"]
    """Every host sends to one host and receives from one."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    pairs_of: str
    """Instead of `hosts`: the very pairs of that table (the `name` of a table before)."""
    priority: int
    """0 is the most urgent; used by NDP's `discipline = "prio"` (0 to 255)."""
    rest_of: str
    """Instead of `hosts`: what that table and those before it left of their permutation. See
    below (the `name` of a table before)."""
    share: Union[float, int]
    """Only this share of the pairs send, drawn; of a fraction of a pair, nothing. See below
    (0.000001 to 1)."""
    size: str
    """Every message has this size, of `partition-aggregate` every answer of a worker.
    `"unbounded"` (the first five kinds): it never ends (1 B to 10^15 B)."""
    start: str
    """When the messages are submitted."""
    start_spread: str
    """Each message is submitted this much later at most, drawn uniformly."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""
    until: str
    """Nothing is submitted at or after this (after `start`)."""


class TrafficRandom(TypedDict, total=False):
    """Every host sends to a host drawn at random."""

    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    destinations: Union[str, int]
    """To whom; no host sends to itself. `rpc`: the servers."""
    distribution: str
    """Sizes are drawn from a published distribution (below)."""
    distribution_file: str
    """Sizes are drawn from points in a file."""
    every: str
    """The same flows again at this interval, whether or not those before are done (a heartbeat);
    sizes and `start_spread` are drawn anew (above 0; at most 16000000 flows in all)."""
    flows: int
    """How many; flow i starts at source i modulo their number (1 to 16000000)."""
    flows_per_host: int
    """Instead of `flows`; with `random_sources` on average (1 to 16000000 over sources)."""
    hotspot_share: Union[float, int]
    """Their share (0 to 1)."""
    hotspots: Union[str, int]
    """These draw the share `hotspot_share` of all messages, alike; the rest goes to the other
    destinations, alike. A sender that would find only itself sends to the others (among
    `destinations`)."""
    kind: Literal["random"]
    """Every host sends to a host drawn at random."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    priority: int
    """0 is the most urgent; used by NDP's `discipline = "prio"` (0 to 255)."""
    random_sources: bool
    """The source of each flow is drawn, too: some hosts send several times, some not at all."""
    size: str
    """Every message has this size, of `partition-aggregate` every answer of a worker.
    `"unbounded"` (the first five kinds): it never ends (1 B to 10^15 B)."""
    sources: Union[str, int]
    """Who sends. `incast`, `barrier`: among whom `senders` are drawn. `rpc`: the clients."""
    start: str
    """When the messages are submitted."""
    start_spread: str
    """Each message is submitted this much later at most, drawn uniformly."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""
    until: str
    """Nothing is submitted at or after this (after `start`)."""


class TrafficIncast(TypedDict, total=False):
    """Many hosts send to one, all at once."""

    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    distribution: str
    """Sizes are drawn from a published distribution (below)."""
    distribution_file: str
    """Sizes are drawn from points in a file."""
    every: str
    """The same flows again at this interval, whether or not those before are done (a heartbeat);
    sizes and `start_spread` are drawn anew (above 0; at most 16000000 flows in all)."""
    kind: Literal["incast"]
    """Many hosts send to one, all at once."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    other_racks: bool
    """Hosts of the receiver's rack send only when all others do already."""
    priority: int
    """0 is the most urgent; used by NDP's `discipline = "prio"` (0 to 255)."""
    receiver: int
    """Who receives (a host)."""
    senders: int
    """How many of the sources send, drawn without replacement; never the receiver (1 to the
    number of sources)."""
    size: str
    """Every message has this size, of `partition-aggregate` every answer of a worker.
    `"unbounded"` (the first five kinds): it never ends (1 B to 10^15 B)."""
    sources: Union[str, int]
    """Who sends. `incast`, `barrier`: among whom `senders` are drawn. `rpc`: the clients."""
    start: str
    """When the messages are submitted."""
    start_spread: str
    """Each message is submitted this much later at most, drawn uniformly."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""
    until: str
    """Nothing is submitted at or after this (after `start`)."""


class TrafficAllToAll(TypedDict, total=False):
    """Every host sends to every other."""

    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    distribution: str
    """Sizes are drawn from a published distribution (below)."""
    distribution_file: str
    """Sizes are drawn from points in a file."""
    every: str
    """The same flows again at this interval, whether or not those before are done (a heartbeat);
    sizes and `start_spread` are drawn anew (above 0; at most 16000000 flows in all)."""
    hosts: Union[str, int]
    """Among whom (at least 2)."""
    kind: Literal["all-to-all"]
    """Every host sends to every other."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    priority: int
    """0 is the most urgent; used by NDP's `discipline = "prio"` (0 to 255)."""
    size: str
    """Every message has this size, of `partition-aggregate` every answer of a worker.
    `"unbounded"` (the first five kinds): it never ends (1 B to 10^15 B)."""
    start: str
    """When the messages are submitted."""
    start_spread: str
    """Each message is submitted this much later at most, drawn uniformly."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""
    until: str
    """Nothing is submitted at or after this (after `start`)."""


class TrafficPoisson(TypedDict, total=False):
    """Messages at random instants, sizes of a distribution, at a stated load."""

    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    destinations: Union[str, int]
    """To whom; no host sends to itself. `rpc`: the servers."""
    distribution: str
    """Sizes are drawn from a published distribution (below)."""
    distribution_file: str
    """Sizes are drawn from points in a file."""
    hosts: Union[str, int]
    """Among whom (at least 2)."""
    hotspot_share: Union[float, int]
    """Their share (0 to 1)."""
    hotspots: Union[str, int]
    """These draw the share `hotspot_share` of all messages, alike; the rest goes to the other
    destinations, alike. A sender that would find only itself sends to the others (among
    `destinations`)."""
    kind: Literal["poisson"]
    """Messages at random instants, sizes of a distribution, at a stated load."""
    load: Union[float, int]
    """Payload that each sending host offers, over the rate of host 0's link (0.0001 to 10)."""
    longest_path: bool
    """Each source draws only from those of its destinations to which the path is as long as any
    in the fabric: hosts of other pods."""
    matrix: Literal["random", "permutation"]
    """Whether each message draws its destination, or each host has one."""
    message_rate: Union[float, int]
    """Messages per second of the whole network, each from a source drawn anew (0.001 to
    1000000000000)."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    pairs_of: str
    """Instead of `hosts`: the very pairs of that table (the `name` of a table before)."""
    priority: int
    """0 is the most urgent; used by NDP's `discipline = "prio"` (0 to 255)."""
    rest_of: str
    """Instead of `hosts`: what that table and those before it left of their permutation. See
    below (the `name` of a table before)."""
    share: Union[float, int]
    """Only this share of the pairs send, drawn; of a fraction of a pair, nothing. See below
    (0.000001 to 1)."""
    size: str
    """Every message has this size, of `partition-aggregate` every answer of a worker.
    `"unbounded"` (the first five kinds): it never ends (1 B to 10^15 B)."""
    sources: Union[str, int]
    """Who sends. `incast`, `barrier`: among whom `senders` are drawn. `rpc`: the clients."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""
    until: str
    """Nothing is submitted at or after this (after 0)."""


class TrafficClosedLoop(TypedDict, total=False):
    """Every host keeps a number of messages in flight, the next after a gap."""

    connections: int
    """Per host, each with at most one message in flight (1 to 65536)."""
    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    destinations: Union[str, int]
    """To whom; no host sends to itself. `rpc`: the servers."""
    distribution: str
    """Sizes are drawn from a published distribution (below)."""
    distribution_file: str
    """Sizes are drawn from points in a file."""
    gap: str
    """Pause before each message, the first included."""
    gap_kind: Literal["fixed", "exponential"]
    """Whether `gap` is the pause or its mean."""
    hotspot_share: Union[float, int]
    """Their share (0 to 1)."""
    hotspots: Union[str, int]
    """These draw the share `hotspot_share` of all messages, alike; the rest goes to the other
    destinations, alike. A sender that would find only itself sends to the others (among
    `destinations`)."""
    keep_destination: bool
    """A connection draws its destination once, not for each message."""
    kind: Literal["closed-loop"]
    """Every host keeps a number of messages in flight, the next after a gap."""
    longest_path: bool
    """Each source draws only from those of its destinations to which the path is as long as any
    in the fabric: hosts of other pods."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    priority: int
    """0 is the most urgent; used by NDP's `discipline = "prio"` (0 to 255)."""
    size: str
    """Every message has this size, of `partition-aggregate` every answer of a worker.
    `"unbounded"` (the first five kinds): it never ends (1 B to 10^15 B)."""
    sources: Union[str, int]
    """Who sends. `incast`, `barrier`: among whom `senders` are drawn. `rpc`: the clients."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""


class TrafficBarrier(TypedDict, total=False):
    """Blocks of an incast: the next one is requested when all senders' parts are there."""

    block: str
    """What all of them send together, in equal parts; of bytes that remain, the first senders
    send one each (a byte per sender to 10^15 B)."""
    blocks: int
    """At most this many blocks (at least 1)."""
    cap: Literal["none", "dynamic"]
    """`dynamic`: the window of each connection is at most its share of pipe and buffer,
    (`cap_rate` x `cap_rtt` + `cap_queue`) / `cap_senders`, bytes on the wire, rounded down to
    whole segments, at least one. The transport's own rules go on below it. TCP only."""
    cap_queue: str
    """Buffer of the bottleneck, bytes on the wire."""
    cap_rate: str
    """Rate of the bottleneck (1bps to 100Tbps)."""
    cap_rtt: str
    """Round trip without queues (0ps to 10s)."""
    cap_senders: int
    """How many share it (at least 1)."""
    connections: Literal["persistent", "fresh"]
    """`persistent`: all messages from one host to another share a connection, its window and its
    timer; `fresh`: each has its own."""
    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    kind: Literal["barrier"]
    """Blocks of an incast: the next one is requested when all senders' parts are there."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    other_racks: bool
    """Hosts of the receiver's rack send only when all others do already."""
    priority: int
    """0 is the most urgent; used by NDP's `discipline = "prio"` (0 to 255)."""
    receiver: int
    """Who receives (a host)."""
    request_gap: str
    """The senders are asked in an order drawn for each block, each so much after the one before;
    0: at once, in that order (0ps to 10s)."""
    request_latency: str
    """From the request of a block until the first sender is asked; from the end of a block, too,
    therefore (1ps to 10s)."""
    senders: int
    """How many of the sources send, drawn without replacement; never the receiver (1 to the
    number of sources)."""
    size: str
    """What each sender sends of a block (the server request unit) (1 B to 10^15 B)."""
    sources: Union[str, int]
    """Who sends. `incast`, `barrier`: among whom `senders` are drawn. `rpc`: the clients."""
    start: str
    """When the first block is requested, or query or call may begin."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""
    until: str
    """None begins at or after this; one in progress is finished and counts (after `start`)."""


class TrafficPartitionAggregate(TypedDict, total=False):
    """Queries over a tree of hosts, with deadlines: late answers are dropped."""

    aggregate: Literal["fixed", "proportional"]
    """An aggregator's answer: `fixed`, as large as a worker's; `proportional`, all that it got
    in time, at least 1 B."""
    aggregators: Union[str, int]
    """Who can be an aggregator; with one level it says nothing (as many as a node asks)."""
    compute: str
    """A worker answers, or a server, so long after its request (0ps to 10s)."""
    compute_kind: Literal["fixed", "exponential"]
    """Whether that is the time or its mean."""
    connections: Literal["persistent", "fresh"]
    """`persistent`: all messages from one host to another share a connection, its window and its
    timer; `fresh`: each has its own."""
    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    deadlines: Sequence[Any]
    """How long each node waits, the root first: one for each number of `fanout`. A root's counts
    from its query, others from their request (each less than the one before)."""
    distribution: str
    """Sizes are drawn from a published distribution (below)."""
    distribution_file: str
    """Sizes are drawn from points in a file."""
    fanout: Sequence[Any]
    """How many nodes each node asks, the root first. `[40]`: a root and its 40 workers; `[4,
    10]`: 4 aggregators with 10 workers each (at most 8 levels)."""
    gap: str
    """Pause of a root before each query, the first included, from the end of the one before."""
    gap_kind: Literal["fixed", "exponential"]
    """Whether `gap` is the pause or its mean."""
    kind: Literal["partition-aggregate"]
    """Queries over a tree of hosts, with deadlines: late answers are dropped."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    placement: Literal["drawn", "in-order"]
    """`drawn`: each node draws those it asks, for each query. `in-order`: the nodes of a level
    take the hosts in order, in every query the same."""
    priority: int
    """0 is the most urgent; used by NDP's `discipline = "prio"` (0 to 255)."""
    queries: int
    """Each root asks at most this many (at least 1)."""
    query_rate: Union[float, int]
    """Queries per second of each root, at random instants (Poisson), whatever is in flight
    (0.001 to 1000000000)."""
    request: str
    """Size of each request (1 B to 10^15 B)."""
    roots: Union[str, int]
    """Who asks, each for itself."""
    size: str
    """Every message has this size, of `partition-aggregate` every answer of a worker.
    `"unbounded"` (the first five kinds): it never ends (1 B to 10^15 B)."""
    start: str
    """When the first block is requested, or query or call may begin."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""
    until: str
    """None begins at or after this; one in progress is finished and counts (after `start`)."""
    workers: Union[str, int]
    """Who can be a worker. A host can have several of the roles; no node asks itself (as many as
    a node asks)."""


class TrafficRpc(TypedDict, total=False):
    """Calls in a closed or open loop: a request, a computation, a response."""

    call_rate: Union[float, int]
    """Open loop: calls per second of each client (0.001 to 1000000000)."""
    calls: int
    """Each client calls at most this often (at least 1)."""
    compute: str
    """A worker answers, or a server, so long after its request (0ps to 10s)."""
    compute_kind: Literal["fixed", "exponential"]
    """Whether that is the time or its mean."""
    connections: Literal["persistent", "fresh"]
    """`persistent`: all messages from one host to another share a connection, its window and its
    timer; `fresh`: each has its own."""
    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    destinations: Union[str, int]
    """To whom; no host sends to itself. `rpc`: the servers."""
    draw_server: Literal["once", "every-call"]
    """How often each of the `outstanding` series, or the client, draws its server among the
    `destinations`."""
    gap: str
    """Pause before each call, the first included, from the end of the one before."""
    gap_kind: Literal["fixed", "exponential"]
    """Whether `gap` is the pause or its mean."""
    hotspot_share: Union[float, int]
    """Their share (0 to 1)."""
    hotspots: Union[str, int]
    """These draw the share `hotspot_share` of all messages, alike; the rest goes to the other
    destinations, alike. A sender that would find only itself sends to the others (among
    `destinations`)."""
    kind: Literal["rpc"]
    """Calls in a closed or open loop: a request, a computation, a response."""
    load: Union[float, int]
    """Open loop (Poisson): payload of requests and responses together that each client causes,
    over the rate of host 0's link. If all hosts are clients and servers alike, that is the load
    of their links in each direction (0.0001 to 10)."""
    longest_path: bool
    """Each source draws only from those of its destinations to which the path is as long as any
    in the fabric: hosts of other pods."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    outstanding: int
    """Closed loop: calls that each client keeps in flight (1 to 65536)."""
    priority: int
    """0 is the most urgent; used by NDP's `discipline = "prio"` (0 to 255)."""
    request: str
    """Size of every request (1 B to 10^15 B)."""
    request_distribution: str
    """As `distribution`, for requests."""
    request_distribution_file: str
    """As `distribution_file`, for requests."""
    response: str
    """Size of every response (1 B to 1.1 TB)."""
    response_distribution: str
    """As `distribution`, for responses, drawn by the client."""
    response_distribution_file: str
    """As `distribution_file`, for responses."""
    sources: Union[str, int]
    """Who sends. `incast`, `barrier`: among whom `senders` are drawn. `rpc`: the clients."""
    start: str
    """When the first block is requested, or query or call may begin."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""
    until: str
    """None begins at or after this; one in progress is finished and counts (after `start`)."""


class TrafficJob(TypedDict, total=False):
    """A training job: ranks compute, and meet in collectives and messages."""

    activations: str
    """What a layer gives to the next one for a microbatch (1 B to 10^15 B)."""
    algorithm: Literal["nccl", "trace", "ring", "tree", "halving-doubling", "hierarchical", "direct"]
    """How collectives are carried out (docs/jobs.md#algorithms). `nccl`: a ring or a tree by
    size, as NCCL's model of 2020 says (specs/ai-jobs.md#2). `trace`: as `system` says."""
    backward: str
    """The same backward (0ps to 10s)."""
    channels: int
    """Channels among which a collective is divided, each with connections of its own (1 to 256)."""
    chunk: str
    """No message of a collective is longer (NCCL: 512 KiB) (1 B to 10^15 B)."""
    collective: Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "barrier"]
    """Each step is this collective of all ranks."""
    compute: str
    """The work of each rank before the collective (0ps to 10s)."""
    connections: Literal["persistent", "fresh"]
    """`persistent`: all messages from one host to another share a connection, its window and its
    timer; `fresh`: each has its own."""
    data_parallel: int
    """A model is trained: the number of its copies (1 to 1048576)."""
    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    dispatch: str
    """What a rank sends to all experts of a layer for a microbatch, its own included (1 B to
    10^15 B)."""
    expert_parallel: int
    """Copies that share the experts of each layer: two all-to-alls of `dispatch` in each pass.
    1: no experts (a divisor of `data_parallel`)."""
    file: str
    """A trace of a job (docs/jobs.md#traces), or the folder with the traces of all ranks
    (`.goal`, `.txt` (SimAI), `.csv` (AICB), `.et` (Chakra))."""
    forward: str
    """Work of a rank for a layer and microbatch, forward (0ps to 10s)."""
    gradients: str
    """Of a rank's part of a layer: an all-reduce over the copies at the end of each step (1 B to
    10^15 B)."""
    groups: str
    """Astra-sim's JSON of groups, for Chakra traces that do not say them."""
    hosts: Union[str, int]
    """The hosts that ranks may be placed on, lowest number first."""
    in_flight: int
    """The most messages of a collective that a channel has unacknowledged at one rank (NCCL: 8)
    (at least 1)."""
    kind: Literal["job"]
    """A training job: ranks compute, and meet in collectives and messages."""
    layers: int
    """Layers of each stage (1 to 100000)."""
    microbatches: int
    """Parts of a step's batch, which pass one after the other (1 to 100000)."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    network: str
    """Astra-sim's JSON of a network for its ns-3 front end: the trace must have as many ranks."""
    nic_wiring: Literal["rail", "leaf"]
    """`rail`: the NICs of a node hang at as many leaves, NIC r at leaf r of each group of `nics`
    leaves. `leaf`: they are consecutive hosts of one leaf."""
    nics: int
    """How many hosts of the fabric are the NICs of one node. A rank uses the NIC that it is on;
    ranks of one node exchange by its scale-up switch (docs/jobs.md#nodes-with-several-nics) (1
    to 256)."""
    overlap: bool
    """Whether a layer's gradients are reduced while those of the layers before it are worked
    out; otherwise those of all layers at once, at the end."""
    pipeline_parallel: int
    """Stages: `activations` go from one to the next, and back. Forward and backward passes
    alternate (1F1B) (1 to 1048576)."""
    placement: Literal["packed", "spread", "file"]
    """`packed`: ranks fill one host after the other. `spread`: each goes to the next host.
    `file`: as `placement_file` says."""
    placement_file: str
    """A host for each rank, a number a line, rank 0 first; lines with `#` in front do not count."""
    priority: int
    """0 is the most urgent; used by NDP's `discipline = "prio"` (0 to 255)."""
    ranks: int
    """How many ranks the job has (1 to 1048576)."""
    ranks_per_host: int
    """How many ranks (GPUs) a host has (1 to 256)."""
    scale_up_latency: str
    """From one port of that switch to another; not 0 with several `nics` (0ps to 10s)."""
    scale_up_rate: str
    """The ranks of a node exchange over a switch of their own (NVLink): the rate of a rank's
    port, each way (1bps to 100Tbps)."""
    size: str
    """The whole vector of the collective: what each rank has (`all-reduce`, `reduce-scatter`,
    `all-to-all`), gets (`all-gather`) or rank 0 has (`broadcast`) (1 B to 10^15 B)."""
    start: str
    """When the job begins."""
    steps: int
    """How many steps the job has (1 to 1000000)."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    straggler_excess: Union[float, int]
    """How much longer: 0.5 is half as long again (0 to 1000000)."""
    straggler_kind: Literal["fixed", "exponential"]
    """Whether `straggler_excess` is always the same, or the mean of what each draws."""
    straggler_share: Union[float, int]
    """The share of pieces of work that take longer, drawn for each (0 to 1)."""
    system: str
    """Astra-sim's JSON of a system: the pieces of collectives, and the algorithm if that is
    `trace`."""
    tensor_parallel: int
    """Ranks that share each layer: two all-reduces of `activations` in each pass (1 to 1048576)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""


class TrafficFile(TypedDict, total=False):
    """A connection matrix of htsim (.cm) or a list of messages (.csv)."""

    deadline: str
    """When each message should be whole at its receiver, from its submission: `deadlines.met`
    and `.missed` in summary.json. Only `rule = "d2tcp"` heeds it. Not for unbounded messages
    (above 0)."""
    file: str
    """The ending says what it is (`.cm`, `.tm` or `.csv`)."""
    kind: Literal["file"]
    """A connection matrix of htsim (.cm) or a list of messages (.csv)."""
    name: str
    """Results of this table's messages alone: `traffic.<name>` in summary.json (letters, digits,
    `-`, `_`; no two that differ in `-` and `_` only)."""
    start_unit: Literal["ps", "us"]
    """What the file's starts count in; without the key, starts that are all below 1 us are
    warned of."""
    stop: str
    """What is in flight then is given up, and nothing begins any more: connections are closed.
    Messages that fail so are not delivered (above 0)."""
    transport: str
    """Which transport carries these messages (a name in `[[transport]]`)."""


#: Any kind.
Traffic = Union[
    TrafficFlow,
    TrafficPermutation,
    TrafficRandom,
    TrafficIncast,
    TrafficAllToAll,
    TrafficPoisson,
    TrafficClosedLoop,
    TrafficBarrier,
    TrafficPartitionAggregate,
    TrafficRpc,
    TrafficJob,
    TrafficFile,
]


class TransportNdp(TypedDict, total=False):
    """NDP (SIGCOMM'17): trimming, receiver-driven pulls, per-packet spraying."""

    abort_after: str
    """A message unanswered for this long fails (own) (above 0)."""
    bounce_history: int
    """How many answers the rule for bounced headers looks back (1 to 32)."""
    control: str
    """Bytes on the wire of an ACK, NACK or PULL (40B to 65000B)."""
    control_queue: int
    """Control packets that may wait for the host's link; more are lost (at least 1)."""
    discipline: Literal["fair", "prio"]
    """Who is pulled next: round robin over messages, or strictly by `priority`."""
    header: str
    """Bytes on the wire beside the payload of a data packet (40B to 65000B)."""
    initial_window: int
    """Packets sent at once, unscheduled, when a message starts (paper: 30) (at least 1)."""
    kind: Literal["ndp"]
    """NDP (SIGCOMM'17): trimming, receiver-driven pulls, per-packet spraying."""
    max_rx_messages: int
    """Messages in reception at once; data for more is ignored (at least 1)."""
    max_tx_messages: int
    """Messages that a sender takes at once (own) (at least 1)."""
    msl: str
    """How long a sender refuses to use the id of a finished message again (see `time_wait`)."""
    payload: str
    """Payload of a full data packet (1B to 65000B)."""
    preset: Literal["paper"]
    """Published values for the keys that are not written."""
    priority_message: dict[str, Any]
    """One message (its sender, and its number there, from 0) whose pulls go before all others:
    `{ host = 3, message = 0 }` (a host of the fabric; any)."""
    pull_interval: str
    """Least time between two pulls; `"wire"`: the wire time of a full packet on the host's link
    (above 0)."""
    pull_on_duplicate: bool
    """A data packet that came before asks for a pull again."""
    rto_initial: str
    """Retransmission timeout before the first round-trip sample (at least 100 ns)."""
    rto_jitter_percent: int
    """A timeout clamped to `rto_min` is spread uniformly by this much either way (0 to 99)."""
    rto_max: str
    """Largest timeout, before jitter (at least `rto_min` and 100 ns)."""
    rto_min: str
    """Smallest timeout, before jitter (above 0)."""
    rx_idle_timeout: str
    """A receiver gives up a message silent, or pulled for in vain, for this long (own) (at least
    `abort_after`)."""
    scoreboard: Literal["decaying", "literal", "off"]
    """Which paths sit out rounds of `mode = "permute"` because they do much worse than the
    others; without effect in other modes. See below."""
    stall_timeout: str
    """A sender that waits for pulls and hears nothing for this long sends one packet unasked
    (own) (above 0)."""
    time_wait: str
    """How long a receiver remembers a finished message (own). With twice the longest time that a
    packet can be in flight in this fabric (all queues on its way full) for `msl`, it must
    suffice as well, or the scenario is refused: the message could be delivered twice (at least
    `abort_after`, the longest timeout and twice `msl` together)."""
    time_wait_entries: int
    """How many messages a receiver knows, finished or not; data of others is ignored (own). A
    sender remembers as many finished ones (at least 1)."""


_TransportTcp = TypedDict(
    "_TransportTcp",
    {
        "class": int,
    },
    total=False,
)


class TransportTcp(_TransportTcp, total=False):
    """TCP with SACK, NewReno or Reno recovery, ECN, ICTCP, and a rule: NewReno, BIC, H-TCP,
    CUBIC, DCTCP, D2TCP or FAST."""

    ack_bytes: str
    """Bytes on the wire of a pure acknowledgement (40B to 65000B)."""
    bic_beta: Union[float, int]
    """Factor of the window after a loss (819/1024) (0 to 1, exclusive)."""
    bic_fast_convergence: bool
    """A flow that loses below its last maximum leaves room."""
    bic_low_window: Union[float, int]
    """Up to this window, segments, it is NewReno (above 0)."""
    bic_max_increment: Union[float, int]
    """Greatest growth per round trip, segments (above 0)."""
    bic_smooth: Union[float, int]
    """How slowly the window grows next to its last maximum (above 0)."""
    conservative_exit: bool
    """Leaving recovery, the window is at most one segment above what is in flight."""
    cubic_beta: Union[float, int]
    """Factor of the window after a loss (0 to 1, exclusive)."""
    cubic_c: Union[float, int]
    """Steepness, segments per second cubed (above 0)."""
    cubic_fast_convergence: bool
    """A flow that loses below its last maximum leaves room."""
    d2tcp_max_urgency: Union[float, int]
    """The greatest; also when the deadline has passed (at least 1)."""
    d2tcp_min_urgency: Union[float, int]
    """Least exponent d of the gamma correction alpha^d: the time that the rest of the message
    needs over the time until its `deadline` (above 0, at most 1)."""
    dctcp_gain: Union[float, int]
    """Weight of the newest round trip in the estimate of marks (g) (above 0, at most 1)."""
    dctcp_initial_alpha: Union[float, int]
    """The estimate before anything was acknowledged; 0 in htsim (0 to 1)."""
    dctcp_min_window: Union[float, int]
    """The window is never below this after a mark or a loss, segments (at least 1)."""
    delayed_ack: str
    """Longest delay of an acknowledgement; `"off"`: every segment is acknowledged."""
    dsack: bool
    """Acknowledgements report duplicates (RFC 2883), in 8 bytes more; needs `recovery = "sack"`."""
    dup_threshold: Union[int, str]
    """Duplicate acknowledgements that mean loss; `"rr"`: RR-TCP learns how many (its keys are
    below) (at least 1)."""
    early_retransmit: bool
    """With fewer than four segments outstanding and no new one to send, as many duplicates as
    can come mean loss (RFC 5827)."""
    ecn: bool
    """All packets are ECN-capable, and marks are echoed and heeded: as a loss, once per window
    of data (RFC 3168); by `dctcp` and `d2tcp`, which need it, in proportion (RFC 8257)."""
    fast_alpha: Union[float, int]
    """Segments that each flow keeps queued (above 0)."""
    fast_gamma: Union[float, int]
    """Share of the way to its new window that each round trip goes (the paper: 0.5) (above 0, at
    most 1)."""
    fast_slow_start_delay: str
    """Queueing delay that ends slow start (the ns-2 module: 0.75 ms)."""
    grow_unused: bool
    """The window grows even while it is not used up."""
    handshake: bool
    """A connection begins with SYN and SYN-ACK of `ack_bytes` each, which give the first
    round-trip sample; otherwise with its first data."""
    htcp_bandwidth_switch: bool
    """A loss halves the window where throughput has changed by more than a fifth."""
    htcp_rtt_scaling: bool
    """Growth is divided by 100 ms over the least round-trip time, within 0.5 to 10."""
    ictcp_alpha: Union[float, int]
    """Share of the link that windows may grow into (0 to 1)."""
    ictcp_beta: Union[float, int]
    """Weight of the old value in the measured throughput (0 to 1)."""
    ictcp_gamma1: Union[float, int]
    """A window grows while its throughput is short of what it allows by no more than this share,
    or by no more than a segment (0 to 1)."""
    ictcp_gamma2: Union[float, int]
    """It shrinks by a segment when its throughput is short by at least this share ... (0 to 1)."""
    ictcp_idle: str
    """A connection on which nothing has come for longer begins anew. The paper says "long time
    idle" and no number."""
    ictcp_min_window: int
    """Least window, and the first, segments (at least 1)."""
    ictcp_scarce_below: Union[float, int]
    """Windows above the average shrink while less than this share of the link is available (0 to
    1)."""
    ictcp_shrink_after: int
    """... in this many round trips in a row (at least 1)."""
    idle_restart: Literal["never", "initial-window", "one-segment", "halving"]
    """How a connection sends again that was silent for longer than its timeout: as before; from
    the initial window (RFC 5681, section 4.1); from one segment, counted from the last
    acknowledgement, not from the last segment (ns-2); with half of its window for each timeout
    of silence, not below the initial one (RFC 2861, Linux)."""
    impatient: bool
    """In recovery only the first partial acknowledgement restarts the timer (RFC 6582)."""
    increase: Literal["per-ack", "per-byte"]
    """The window grows with each acknowledgement (RFC 5681), or with what it acknowledges (RFC
    3465)."""
    initial_ssthresh: Union[float, int, str]
    """Initial slow-start threshold, segments; `ns3-3.17`: 65535 B in whole segments (at least
    1)."""
    initial_window: Union[float, int]
    """Segments (at least 1)."""
    isn: int
    """Initial sequence number (0 to 2^32 - 1)."""
    kind: Literal["tcp"]
    """TCP with SACK, NewReno or Reno recovery, ECN, ICTCP, and a rule: NewReno, BIC, H-TCP,
    CUBIC, DCTCP, D2TCP or FAST."""
    limited_transmit: bool
    """The first two duplicates each release a new segment (RFC 3042)."""
    max_messages: int
    """Messages that a host may have in flight (at least 1)."""
    max_timeouts: int
    """A message fails after this many timeouts in a row (at least 1)."""
    mss: str
    """Largest payload of a segment (1B to 65000B)."""
    overhead: str
    """Bytes on the wire beside the payload (40B to 65000B)."""
    pias_thresholds: Sequence[Any]
    """PIAS: packets that begin beyond the first of these positions in their message go one class
    below `class`, beyond the second two, and so on; at hosts a higher class goes first.
    Acknowledgements have `class` (one to `class`, ascending)."""
    preset: Literal["linux-datacenter", "ns2", "htsim", "linux-2.6", "ns3-3.17", "ns3-3.39"]
    """Published values for the keys that are not written."""
    quick_acks: int
    """This many acknowledgements at the start of a connection are not delayed."""
    receive_window: Literal["unlimited", "ictcp"]
    """What receivers let senders have in flight: anything, or what ICTCP allows (its keys are
    below)."""
    recovery: Literal["reno", "newreno", "sack"]
    """How losses are repaired. `reno`: one lost segment; the first acknowledgement of anything
    new ends the recovery (RFC 5681). `newreno`: a lost segment per round trip (RFC 6582).
    `sack`: what SACK blocks say is missing (RFC 6675); an acknowledgement with n blocks is 4 + 8
    n bytes longer, n at most 4. `conservative_exit` and `impatient` are for `newreno` only."""
    rr_fa_ratio: Union[float, int]
    """The percentile of a new connection: the share of false fast retransmits to be avoided (the
    publication's example) (0 to 1)."""
    rr_history: int
    """Reordering lengths that are remembered (own) (at least 1)."""
    rr_step: Union[float, int]
    """By how much a false fast retransmit raises it; a needless wait lowers it, as much more as
    it costs more (own) (above 0, at most 1)."""
    rto_ack_ends_backoff: bool
    """Any acknowledgement of new data ends the backoff (Linux)."""
    rto_first_rttvar: Union[float, int]
    """Mean deviation after the first sample, as a share of it (at least 0)."""
    rto_fixed: bool
    """The timeout is `rto_min`, whatever is measured, and never backed off."""
    rto_initial: str
    """Timeout before the first sample (at least 100 ns)."""
    rto_max: str
    """Greatest timeout, backed off or not (at least `rto_min` and 100 ns)."""
    rto_min: str
    """Least retransmission timeout (above 0; with `rto_fixed` at least 100 ns)."""
    rto_min_is_variance: bool
    """`rto_min` bounds the term of the variance, not the sum (Linux)."""
    rto_random: Union[float, int]
    """X: a timeout t is drawn from t to (1 + x) t, after backoff and beyond `rto_max` too, anew
    for each expiry (SIGCOMM 2009: 0.5) (at least 0)."""
    rto_rttvar_gain: Union[float, int]
    """Weight of the newest deviation in the mean deviation (above 0, at most 1)."""
    rto_srtt_gain: Union[float, int]
    """Weight of the newest sample in the smoothed round-trip time (above 0, at most 1)."""
    rto_tick: str
    """Granularity of the clock; `0` is an ideal one."""
    rule: Literal["newreno", "bic", "htcp", "cubic", "dctcp", "d2tcp", "fast"]
    """The congestion-control rule."""
    slow_start: bool
    """Below `ssthresh` the window grows exponentially; `false`: always as in congestion
    avoidance."""
    slow_start_limit: Union[float, int, str]
    """Segments per acknowledgement in slow start; a number is at most 1 in the slow start that
    follows a timeout (RFC 3465) (above 0)."""
    ssthresh_of: Literal["window", "flight"]
    """A loss or a timeout halves the window in use (ns-2, Linux, htsim), or what is in flight if
    that is less (RFC 5681, equation 4)."""
    timestamps: bool
    """Every acknowledgement of new data is a round-trip sample (RFC 7323), not one segment at a
    time; count the 12 bytes into `overhead` and `ack_bytes`."""
    undo: Literal["none", "eifel", "dsack"]
    """The window that a needless fast retransmit or timeout took is restored (RFC 4015) when
    timestamps prove it needless (RFC 3522; needs `timestamps`), or duplicates reported do (RFC
    3708; needs `dsack`)."""
    window_cap: Union[float, int, str]
    """Largest window, segments; `ns3-3.17`: 65535 B in whole segments (at least 1)."""


class TransportMptcp(TypedDict, total=False):
    """Multipath TCP (RFC 8684): subflows with coupled windows; MMPTCP (INFOCOM'16): packets
    scattered over all paths, and subflows after the first bytes."""

    coupling: Literal["lia", "olia", "uncoupled", "linked", "fully-coupled", "ewtcp", "semicoupled"]
    """How windows grow in congestion avoidance. `lia`: all together as one TCP on the best path
    (RFC 6356). `olia`: Khalili and others, CoNEXT 2012. `uncoupled`: each as a TCP. `linked`:
    `lia` without its cap at a TCP's growth. The others: Wischik and others, NSDI 2011. Slow
    start and decreases are NewReno's, but `fully-coupled` halves the total."""
    ecn: bool
    """As for `tcp`."""
    ewtcp_weight: Literal["1/sqrt(n)", "1/n^2"]
    """A subflow's growth as a share of a TCP's."""
    handshake_sample: bool
    """The handshake of a subflow is a sample of its round-trip time; otherwise its timeout is
    `rto_initial` until data was acknowledged."""
    join_gap: str
    """A subflow that joins waits for a random number of whole microseconds below this, another
    one each (0, or a microsecond for each join)."""
    kind: Literal["mptcp"]
    """Multipath TCP (RFC 8684): subflows with coupled windows; MMPTCP (INFOCOM'16): packets
    scattered over all paths, and subflows after the first bytes."""
    lia_min_increase: str
    """An acknowledgement adds at least this much (ns-3: a byte) (0 to `mss`)."""
    opportunistic: bool
    """While `receive_buffer` or `send_buffer` is full, the windows of slower subflows that have
    the oldest data outstanding are halved, once per round trip; another one sends that data,
    too, if their round trips are over 4 times its own or their windows 4 segments at most."""
    phases: Literal["multipath", "scatter-then-multipath", "scatter"]
    """What a connection does. `multipath`: Multipath TCP, several subflows from the start.
    `scatter-then-multipath`: MMPTCP, one subflow whose packets each take a path of their own,
    and the others later. `scatter`: the first of the two phases for ever."""
    preset: Literal["mmptcp-infocom16", "linux", "htsim"]
    """Published values for the keys that are not written."""
    receive_buffer: str
    """What a receiver lets its peer send of a connection beyond what has come in order (at least
    `mss`)."""
    recovery: Literal["reno", "newreno", "sack"]
    """As for `tcp`."""
    reinject: Literal["none", "timeout"]
    """`timeout`: what a subflow has outstanding when its timer expires goes over others, too. If
    a subflow fails (`max_timeouts`), it always does."""
    rr_fa_ratio: Union[float, int]
    """As for `tcp` (0 to 1)."""
    rr_history: int
    """As for `tcp` (at least 1)."""
    rr_step: Union[float, int]
    """As for `tcp` (above 0, at most 1)."""
    scatter_dup_threshold: Union[int, str]
    """`dup_threshold` of the first subflow; `"paths"`: 3 and one more for each path to the
    destination, 3 if there is but one; `"rr"` as there, with its keys (at least 1)."""
    scheduler: Literal["round-robin", "lowest-rtt"]
    """Which subflow with window for it carries the next segment."""
    semicoupled_exponent: Union[float, int]
    """0 moves everything to the best paths, 2 is `uncoupled` (0 to 2)."""
    semicoupled_weight: Union[float, int]
    """How aggressive all together are (above 0, at most 1)."""
    send_buffer: str
    """What a sender has in flight of a connection that is not acknowledged in order (at least
    `mss`)."""
    subflows: int
    """Of each connection (1 to 63)."""
    switch: Literal["bytes", "window", "loss"]
    """When the others join: after `switch_bytes`; when window over round-trip time is
    `switch_share` of the rate of the host's link; at the first fast retransmit."""
    switch_bytes: str
    """More than this was sent, retransmissions not counted, when an acknowledgement comes; by
    all messages of a `channel` together, as they share a connection."""
    switch_postpone: bool
    """Not during slow start, recovery or what follows a timeout."""
    switch_share: Union[float, int]
    """See `switch` (specs/mptcp.md#4: 0.02) (above 0, at most 1)."""


class TransportPhost(TypedDict, total=False):
    """PHost (CoNEXT'15): receivers hand out tokens, shortest message first."""

    abort_after: str
    """A message of which nothing is heard for this long fails (own) (above 0, below
    `time_wait`)."""
    class_control: int
    """Traffic class of control packets (0 to 7)."""
    class_long: int
    """Traffic class of other data (0 to 7)."""
    class_short: int
    """Traffic class of data of short messages (0 to 7)."""
    control: str
    """Bytes on the wire of a control packet (40B to 65000B)."""
    free_tokens: Union[int, str]
    """Tokens that a sender gives itself when a message starts. `"bdp"`: what it can send in one
    round trip; n: one for each packet of a message of at most n, none for a longer one."""
    header: str
    """Bytes on the wire beside the payload (40B to 65000B)."""
    kind: Literal["phost"]
    """PHost (CoNEXT'15): receivers hand out tokens, shortest message first."""
    payload: str
    """Payload of a full packet (1B to 65000B)."""
    preset: Literal["ndp-paper", "authors"]
    """Published values for the keys that are not written."""
    request_timeout: Union[float, int]
    """A sender that has heard nothing for this many packet times asks again (0.001 to 1000000)."""
    resend_timeout: Union[float, int]
    """When every packet has had its token, what is missing gets others after this many packet
    times (0.001 to 1000000)."""
    rx_idle_timeout: str
    """A receiver forgets a message silent for this long (own) (at least `abort_after`)."""
    short_packets: int
    """A message of at most this many packets is short."""
    time_wait: str
    """How long a receiver remembers a finished message (own) (above `abort_after`)."""
    token_expiry: Union[float, int]
    """Packet times after which an unused token is void (0.001 to 1000000)."""
    window: int
    """Tokens of a message in flight at once (at least 1)."""
    window_timeout: Union[float, int]
    """A message whose window is used up gets one more token after this many packet times without
    one (0.001 to 1000000)."""


_TransportPfabric = TypedDict(
    "_TransportPfabric",
    {
        "class": int,
    },
    total=False,
)


class TransportPfabric(_TransportPfabric, total=False):
    """PFabric (SIGCOMM'13): packets say how much of their message is left, for switches that
    serve the least and lose the most; line rate until a timeout."""

    abort_after: str
    """A message of which nothing is acknowledged for this long while it sends fails (own) (above
    0, below `time_wait`)."""
    control: str
    """Bytes on the wire of acknowledgements and probes, which have no payload (40B to 65000B)."""
    header: str
    """Bytes on the wire beside the payload (40B to 65000B)."""
    initial_window: int
    """Packets that a message sends before anything of it is acknowledged, at line rate (1 to
    4096)."""
    kind: Literal["pfabric"]
    """PFabric (SIGCOMM'13): packets say how much of their message is left, for switches that
    serve the least and lose the most; line rate until a timeout."""
    max_window: int
    """Packets beyond the first unacknowledged one at most (`initial_window` to 4096)."""
    payload: str
    """Payload of a full packet (1B to 65000B)."""
    preset: Literal["paper", "homa-paper"]
    """Published values for the keys that are not written."""
    probe_after: int
    """Timeouts in a row after which a message sends probes instead of packets (at least 1)."""
    rto: str
    """So long after the last progress everything in flight counts as lost, and the window is one
    packet; always the same (at least 100 ns)."""
    rx_idle_timeout: str
    """A receiver forgets a message silent for this long (own) (at least `abort_after`)."""
    time_wait: str
    """How long a receiver remembers a finished message (own) (above `abort_after`)."""


class TransportHoma(TypedDict, total=False):
    """Homa (SIGCOMM'18): receivers grant to the shortest messages and choose priorities; Homa-Tr
    (SOSR'21), which refuses at once what switches have trimmed."""

    abort_after: str
    """A sender gives up a message unanswered, or unknown to its receiver, for this long (own)
    (above 0)."""
    ack_delay: str
    """That a message is whole is reported with the next data in the other direction, or after
    this long by itself (own)."""
    boost_tail: bool
    """The last `rtt_bytes` of a message are granted at the level of a message of that size, if
    that is better."""
    control: str
    """Bytes on the wire of a control packet (40B to 65000B)."""
    cutoffs: Sequence[Any]
    """Messages up to the first size use level 0 for what leaves unscheduled, up to the second
    level 1 and so on, all others the next level. Levels beyond are for granted packets. This or
    `workload` must be written (at most 7, ascending)."""
    header: str
    """Bytes on the wire beside the payload: in `paper` 30 of Homa, 28 of IP and UDP, 38 of
    Ethernet, preamble and gap included (40B to 65000B)."""
    incast_bytes: str
    """The response to a marked request begins with this much unscheduled: in a packet of its own
    that is no longer, or in whole packets if it is not less than `payload`. See
    `scenarios/homa_incast.toml` (1B to 1073741824B)."""
    incast_threshold: int
    """With more requests than this unanswered, further ones are marked. Without the key: no
    incast control. For `kind = "rpc"`; any message that is no response counts as a request."""
    kind: Literal["homa"]
    """Homa (SIGCOMM'18): receivers grant to the shortest messages and choose priorities; Homa-Tr
    (SOSR'21), which refuses at once what switches have trimmed."""
    overcommitment: int
    """Messages that are given grants at once, of as many senders; `paper`: `priorities` less
    those for what leaves unscheduled (at least 1)."""
    payload: str
    """Payload of a full packet (1B to 65000B)."""
    preset: Literal["paper"]
    """Published values for the keys that are not written."""
    priorities: int
    """Priority levels in all (1 to 8)."""
    priority_by: Literal["remaining", "length"]
    """What is compared with the cut-offs: what is left of the message at that packet, or all of
    it."""
    resend_timeout: str
    """What is missing for this long is asked for again (at least 100 ns)."""
    rtt_bytes: str
    """What leaves unscheduled at the start of a message, and what a receiver keeps granted
    ahead, payload; rounded up to whole packets, fewer than 65535 (1B to 1073741824B)."""
    rx_idle_timeout: str
    """A receiver gives up a message silent, or asked for in vain, for this long (own) (at least
    `abort_after`)."""
    trimmed: Literal["lost", "refused", "refused-as-published"]
    """What a packet is to its receiver that comes without its payload, from a switch with `full
    = "trim"`. `lost`: Homa. `refused`: Homa-Tr (the nanoTransport paper), whose receiver refuses
    it at once, and whose sender repeats it with the next grant of that message.
    `refused-as-published`: with three defects of the public code (E2, E3 and E4 of docs/nic.md)."""
    unscheduled_priorities: int
    """Levels for what leaves unscheduled (1 to 8)."""
    workload: str
    """A size distribution, as in `[[traffic]]`: the cut-offs with which `unscheduled_priorities`
    levels carry equal bytes of it."""


_TransportRdma = TypedDict(
    "_TransportRdma",
    {
        "class": int,
    },
    total=False,
)


class TransportRdma(_TransportRdma, total=False):
    """RDMA over Converged Ethernet: queue pairs, and a rule for their rate: none, TIMELY,
    patched TIMELY, FAST, DCQCN, HPCC or Swift."""

    ack_bytes: str
    """Bytes on the wire of acknowledgements and other control packets (40B to 65000B)."""
    ack_class: int
    """Traffic class of control packets. The same as `class`: no priority for acknowledgements (0
    to 7)."""
    ai: Union[float, int]
    """Growth per round trip, packets (above 0)."""
    alpha: Union[Union[float, int], Union[str, float]]
    alpha_first: bool
    """A notification raises alpha before it cuts, not after."""
    alpha_timer: str
    """Alpha falls after this long without a notification; with `feedback = "ack"` it is computed
    at this interval (from 1 ns)."""
    base_target: str
    """Target of the delay in the fabric."""
    beta: Union[float, int]
    bypass: bool
    byte_counter: str
    """And each time that this much has been sent (above 0)."""
    clamp_target: bool
    """Each cut brings the target down to the rate; if not, only the first after an increase."""
    clock_calibration: str
    """How often hosts compare both clocks, to translate one into the other. `"start"`: only
    then, and drift adds up (above 0)."""
    clock_drift: int
    """The clock of an interface differs from its host's by at most this many parts in 10^9,
    drawn for each host. With `timestamps = "nic"` (0 to 1000000)."""
    clock_reading: str
    """In such a comparison the host reads its own clock later by a time drawn between zero and
    this."""
    cnp_interval: str
    """No more than one notification for a queue pair in this time."""
    count_nic_wait: bool
    """Round-trip times include what a segment waited for others in its host's interface."""
    cut_interval: str
    """A cut at the end of each interval of this length in which a mark came; the first mark
    begins the first (from 1 ns)."""
    delta: Union[str, float]
    ecn: bool
    """Packets may be marked."""
    endpoint_target: str
    """Target of the delay in the hosts: from a packet's arrival at the receiver's interface to
    its acknowledgement's departure there, and from the arrival of that at the sender's to its
    transport."""
    eta: Union[float, int]
    """What links are loaded to (above 0, at most 1)."""
    f: int
    """From which time on the target is raised, too (at least 1)."""
    feedback: Literal["cnp", "ack"]
    """How a mark comes back: by a notification packet, or with the acknowledgement."""
    feedback_jitter: str
    """Receivers hold each acknowledgement and congestion notification for a time drawn between
    zero and this; they may overtake one another. With `operation = "write"`."""
    flows: int
    """N: the additive step is the window of a whole link times (1 - `eta`) over this number of
    flows (at least 1)."""
    fs_max: Union[float, int]
    """The window, packets, from which on it adds nothing (above `fs_min`)."""
    fs_min: Union[float, int]
    """The window, packets, below which flow scaling adds `fs_range` (above 0)."""
    fs_range: str
    """The most that flow scaling adds to the target, at windows of `fs_min` and less; `"off"`:
    nothing (above 0)."""
    g: Union[float, int]
    """Weight of the newest observation in alpha (above 0, at most 1)."""
    gamma: Union[float, int]
    """Share of the way to the new rate that an update goes (above 0, at most 1)."""
    hai_after: int
    hai_below_t_low: Union[bool, str]
    hai_by: Literal["gradient", "difference"]
    hai_factor: Union[float, int]
    hop_scaling: str
    """What each link on the way adds to it."""
    initial_rate: Union[str, float]
    initial_window: Union[float, int]
    """The first window, packets (`min_cwnd` to `max_cwnd`)."""
    kind: Literal["rdma"]
    """RDMA over Converged Ethernet: queue pairs, and a rule for their rate: none, TIMELY,
    patched TIMELY, FAST, DCQCN, HPCC or Swift."""
    max_cwnd: Union[float, int]
    """Greatest window, packets (at least `min_cwnd`)."""
    max_mdf: Union[float, int]
    """The greatest part that a decrease takes off (above 0, below 1)."""
    max_rate: Union[str, float]
    max_stage: int
    """After this many additive steps the window is set by the load again."""
    max_timeouts: int
    """A message fails after this many timeouts without progress (at least 1)."""
    min_cwnd: Union[float, int]
    """Least window, packets (above 0)."""
    min_factor: Union[float, int]
    min_rate: Union[str, float]
    min_rtt: str
    min_use: Union[float, int]
    nack_interval: str
    """The same missing packet is named again after this long."""
    nic_pacing: str
    """Packets of a segment leave at this rate; `"own"`: at that of their queue pair, without
    bursts, which needs `count_nic_wait = false`. With `read` a rate also spaces the packets that
    a host answers with, each request's by itself (above 0)."""
    operation: Literal["write", "read"]
    """`write`: the host that has the data paces it. `read`: it offers a message, and the other
    host asks for its segments, paces these requests, and has the rule. It needs `go-back-n`."""
    overhead: str
    """Bytes on the wire beside the payload; with `rule = "hpcc"` 42 B of telemetry are among
    them (40B to 65000B)."""
    payload: str
    """Payload of a full packet (1B to 65000B)."""
    preset: Literal["paper"]
    """Published values for the keys that are not written."""
    r_ai: Union[str, float]
    """By this much (above 0)."""
    r_hai: Union[str, float]
    """By this much when timer and counter are both beyond `f`, or the timer if there is no
    counter (above 0)."""
    rate_timer: str
    """Interval at which the rate is raised (from 1 us)."""
    reaction: Literal["both", "per-rtt", "per-ack"]
    """Which acknowledgements change the window: all, from a reference of the last round trip;
    one in a round trip, and nothing is measured in between; all, each from what the last one
    left."""
    recompute_gap: bool
    """A new rate changes the gap that has begun, too, not only the next."""
    recovery: Literal["go-back-n", "selective"]
    """`go-back-n`: receivers take packets in order and name the first that is missing; all from
    there on is sent again. `selective`: they take what comes; what is missing is sent again. It
    needs `segment = "packet"`."""
    reordering: int
    """A packet is lost if one sent this many later has been acknowledged (1 to 63)."""
    retx_reset_threshold: int
    """This many timeouts without an acknowledgement make the window the least (at least 1)."""
    rto_initial: str
    """First timeout (own) (at least 100 ns)."""
    rto_max: str
    """Greatest timeout (own) (at least 100 ns)."""
    rto_min: str
    """Least retransmission timeout (RFC 6298) (above 0, at most `rto_max`)."""
    rtt: str
    """T: a little more than the longest round-trip time without queues (above 0)."""
    rtt_noise: str
    """Each such time is later by one drawn between zero and this."""
    scaled: bool
    segment: str
    """What is acknowledged: each packet, or a burst of as many full packets as have this much
    payload (up to 32768 payloads)."""
    subtract: Literal["segment", "packet"]
    """What round-trip times leave out of a segment's own time on the first link: all, or its
    last packet's (the simulator of "ECN or Delay"). Without `count_nic_wait`: all."""
    t_high: str
    t_low: str
    timestamps: Literal["nic", "host"]
    """Who takes the time of an acknowledgement for round-trip times: the interface when it
    arrives, or the host when it handles it."""
    update: Literal["completion", "round-trip"]
    w_ai: Union[str, float]
    """Instead of `flows`: the additive step as a rate (above 0)."""
    zero_gradient_increases: bool


_TransportUet = TypedDict(
    "_TransportUet",
    {
        "class": int,
    },
    total=False,
)


class TransportUet(_TransportUet, total=False):
    """Ultra Ethernet (UE 1.0): a window at the sender by delay, marks and trimming (NSCC),
    credit of the receiver (RCCC), or both, and a path for each packet by entropy values
    (oblivious, bitmap, REPS, mixed)."""

    abort_after: str
    """A message of which nothing is heard for this long while it sends fails (own) (above 0,
    below `time_wait`)."""
    base_rtt: str
    """The round trip of a full packet on an empty path, from which windows, target delay and
    timeout follow; `"longest"`: on the longest path of the fabric (above 0)."""
    control: Literal["nscc", "dctcp", "smartt", "constant", "none"]
    """How a sender's window follows the network: `nscc` by delay, marks and trimmed packets,
    `dctcp` and `smartt` as EQDS does, `constant` not at all; `none`: there is no window, and
    `credit` has to be on."""
    control_size: str
    """Bytes on the wire of acknowledgements and NACKs (40B to 65000B)."""
    control_weight: int
    """Control packets that a host sends for each one of data while both wait (at least 1)."""
    credit: bool
    """Receivers give credit (RCCC), at 0.99 of their link's rate; a sender needs credit beside
    its window."""
    credit_rule: Literal["rccc", "eqds"]
    """How senders ask for credit and receivers give it: `rccc`, or `eqds` in whole turns, first
    to messages with refused packets, at 0.986 of their link's rate."""
    credit_turn: str
    """What a message is given in its turn, in whole units of 256 B (256B to 1000000B)."""
    entropies: int
    """Entropy values of a message (a power of two, 1 to 32768)."""
    header: str
    """Bytes on the wire beside the payload (40B to 65000B)."""
    hold_back: bool
    """Turns of credit are left out at random by the share of packets that were marked or trimmed
    in the last 10us, beyond a tenth (EQDS, for oversubscribed fabrics)."""
    initial_window: str
    """The first window of a message, headers included, `max_window` at most; `"derived"`: that
    (at least 1 B)."""
    keep_connections: str
    """Messages of one channel share a connection, with its window, credit and entropy values; it
    is kept for this long after the last of them was acknowledged (up to `rx_idle_timeout`)."""
    kind: Literal["uet"]
    """Ultra Ethernet (UE 1.0): a window at the sender by delay, marks and trimming (NSCC),
    credit of the receiver (RCCC), or both, and a path for each packet by entropy values
    (oblivious, bitmap, REPS, mixed)."""
    max_window: str
    """The most that may be in flight, or sent before the first answer, headers included;
    `"derived"`: one and a half bandwidth-delay products, which NSCC keeps to anyway (at least 1
    B)."""
    oversubscription: Union[float, int, str]
    """What hosts can send over what the fabric carries between switches. Above 1, and with
    `control = "none"`, credit is given at a rate that follows marks and trimming; `"derived"`:
    from the topology's rates (1 to 1000)."""
    payload: str
    """Payload of a full packet (1B to 65000B)."""
    preset: Literal["htsim", "ue-1.0", "eqds"]
    """Published values for the keys that are not written."""
    profile: Literal["htsim", "ue-1.0"]
    """Whose rules the window follows where they differ: `htsim` the public simulator's, `ue-1.0`
    those of the text (docs/specs/uet.md, section 4.7). With `control = "nscc"` only."""
    rto: str
    """A packet that is not answered for this long is lost; `"derived"`: 15us and six times the
    time in which a queue of a bandwidth-delay product drains (at least 100 ns)."""
    rto_doublings: int
    """How often `rto` doubles at most while no bytes arrive (own; the public simulator: `0`,
    never) (0 to 16)."""
    rx_idle_timeout: str
    """A receiver forgets a message silent for this long (own) (at least `abort_after`)."""
    sack_threshold: str
    """A receiver acknowledges after so many bytes on the wire; marked packets, the first, and
    those that ask for it, at once (1B to 1000000B)."""
    sleek: bool
    """A sender finds losses by packets that arrive out of order, and by probes (SLEEK); for
    switches that do not trim. With `control = "nscc"` only."""
    spray: Literal["oblivious", "bitmap", "skip", "reps", "mixed", "mrc"]
    """How the entropy value of each packet is chosen, by which it takes its path. See
    docs/specs/uet.md, section 3."""
    time_wait: str
    """How long a receiver remembers a finished message (own) (above `abort_after`)."""
    trimming: bool
    """Switches trim. Where they do not, windows aim at a queueing delay of one base round trip,
    not of three quarters, and a timeout does not freeze REPS."""


class TransportBuffer(TypedDict, total=False):
    """The table `[transport.buffer]`."""

    count: int
    """How many (at least 1; 4 MiB in all)."""
    size: str
    """Of each; with a model 1024 B at least, and a multiple of 64 B (64B to 65472B)."""


class TransportNic(TypedDict, total=False):
    """A programmable NIC (nanoTransport, SOSR'21) with NDP, Homa, Homa-Tr, or a P4 program of
    your own."""

    backend: Literal["model", "interpreter", "rust", "rtl"]
    """Who runs it: a model in Rust (of the first three on a NIC), the reference interpreter, or
    Rust generated when Trimline was built (the programs of `p4/`, with the constants that
    `crates/programs/build.rs` lists), or a circuit that is simulated cycle by cycle (a NIC with
    `clocked = true`: nic.md). Results are the same."""
    buffer: Union[TransportBuffer, Sequence[TransportBuffer]]
    clocked: bool
    constants: dict[str, Any]
    """Other values for constants of the program, `constants = { TRIM = true }`; which there are,
    it says (integers and booleans)."""
    count_chops: bool
    """A trimmed packet makes room for another (the constant `COUNT_CHOPS`), and so does its
    repetition: the window of its message grows by one for each."""
    egress_cycles: int
    entries: str
    """Entries for the program's tables, p4.md."""
    ingress_cycles: int
    ingress_timeouts: int
    kind: Literal["nic"]
    """A programmable NIC (nanoTransport, SOSR'21) with NDP, Homa, Homa-Tr, or a P4 program of
    your own."""
    max_pulls: int
    """PULLs that wait for the pacer; others are lost."""
    max_timeouts: Union[int, str]
    overcommitment: int
    """Messages that are granted at a time (1 to 7)."""
    overhead: str
    """Headers of a packet: what the program writes. `"98B"` for `hpcc.p4`. The ideal completion
    time needs it (64B to 65000B)."""
    preset: Literal["firesim"]
    """Published values for the keys that are not written."""
    priorities: int
    """How many types of service the program uses, from 0: type t is traffic class 7 - t, and
    what is beyond counts as the last. 1 for `ndp.p4`, 4 for `homa.p4`, 2 for `hpcc.p4`,
    `swift.p4`, `dcqcn.p4`, `nscc.p4` (1 to 8)."""
    probe: bool
    program: str
    """What runs: on a NIC NDP, Homa or Homa-Tr, or a program of your own (the path of a `.p4`
    file; on a NIC also `ndp`, `homa`, `homa-tr`)."""
    protocol: Union[int, dict[str, Any]]
    """The IP protocol that messages are sent with: 155 for `ndp.p4`, 154 for `homa.p4`; refused
    if the program does not write it into their packets. A program of several: `{ ndp = 155, homa
    = 154 }`, and each `[[traffic]]` says which by `transport = "ndp"` (0 to 255)."""
    pull_cycles: int
    remember: Union[int, str]
    rtl_hosts: Sequence[Any]
    """Hosts whose NIC is the circuit; the others run the model of it (numbers of hosts)."""
    rtt_packets: int
    rx_messages: int
    strict_paper: bool
    """The program without the repairs E2 and E9 of docs/nic.md (its constant `STRICT_PAPER`):
    what is trimmed after its message has been granted whole waits for the timeout, and
    duplicates of a message in progress are not answered. With `probe = false` it is as
    published, but for E1, E4 and E6."""
    telemetry: bool
    """Switches write in-band telemetry into packets whose type of service asks for it, as they
    do for `rule = "hpcc"`."""
    timeout: str
    tx_messages: int


class TransportCbr(TypedDict, total=False):
    """Unresponsive sources of a constant bit rate: load for switches, never complete."""

    header: str
    """Bytes on the wire beside it (40B to 65000B)."""
    kind: Literal["cbr"]
    """Unresponsive sources of a constant bit rate: load for switches, never complete."""
    payload: str
    """Payload of a packet (1B to 65000B)."""
    rate: str
    """Rate of each message, headers included (above 0)."""


class TransportCustom(TypedDict, total=False):
    """A transport of the program that runs the scenario, such as a class in Python."""

    header: str
    """Bytes on the wire beside the payload (40B to 65000B)."""
    kind: Literal["custom"]
    """A transport of the program that runs the scenario, such as a class in Python."""
    payload: str
    """Payload of a full packet (1B to 65000B)."""


#: Any kind.
Transport = Union[
    TransportNdp,
    TransportTcp,
    TransportMptcp,
    TransportPhost,
    TransportPfabric,
    TransportHoma,
    TransportRdma,
    TransportUet,
    TransportNic,
    TransportCbr,
    TransportCustom,
]


class BufferShared(TypedDict, total=False):
    """One memory for all ports of a switch, with dynamic thresholds."""

    alpha: Union[float, int]
    """A packet is lost that finds its queue holding this times the free memory, or more, or no
    room in the memory (1/1024 to 1024)."""
    kind: Literal["shared"]
    """One memory for all ports of a switch, with dynamic thresholds."""
    size: str
    """Memory of each switch, packets in service included (a full packet to 1 GB)."""


#: Any kind.
Buffer = Union[
    BufferShared,
]


class Engine(TypedDict, total=False):
    """The table `[engine]`."""

    calibrate: Union[float, int]
    """Share of the measurement window, from its start, that is run packet by packet first, to
    correct completion times of all messages at flow level and to measure the error that is left
    (0.01 to 0.9)."""
    error: Union[float, int]
    """The largest error of mean, median and 99th percentile of slowdowns of any size that is
    accepted, as a share (0.001 to 1)."""
    level: Literal["packet", "flow", "auto"]
    """`packet`: every packet at every hop. `flow`: messages are fluids that share links, some
    events for each; for a hundred thousand hosts. No queues, losses and marks then:
    docs/flow-level.md. `auto`: `flow` if its measured error is at most `error`, else `packet`."""
    skip: bool
    """Skip time in which everything repeats: a run of its own, with errors of its own:
    docs/skip.md."""
    skip_tolerance: Union[float, int]
    """How far three windows may differ that count as alike, as a share of their mean (0.000001
    to 0.999999)."""


class Fault(TypedDict, total=False):
    """The table `[fault]`."""

    action: Literal["down", "up", "flap", "rate", "loss", "slow", "pause"]
    """What."""
    announce: bool
    """Whether switches and hosts hear of its beginning and of its end, each
    `routing.reroute_after` later; in between no path leads over the link."""
    at: str
    """From when."""
    down_share: Union[float, int]
    """Share of each period, at its beginning, during which the link is down (above 0, below 1)."""
    factor: Union[float, int]
    """How many times as long the work of GPUs takes (above 0, at most 10^6)."""
    host: int
    """All ranks on this host do (a host of the fabric)."""
    job: str
    """Whose ranks: the `name` of a `[[traffic]]` table."""
    link: str
    """The link. Nodes are `host n`, `tor n`, `agg n`, `core n`. The leaves of a leaf-spine are
    `tor`, its spines `agg`; the switch of a star is `tor 0`, those of a dumbbell `tor 0` and
    `tor 1`. The intermediate switches of a `vl2` are `core`. In a `bcube`: `host n`, `relay n`,
    `switch m`, level 0 first. With several `planes`: `plane n tor m` and so on, `nic n -> plane
    m tor k` for the port of a host (`"A n -> B m"`)."""
    one_way: bool
    """Only in the direction written; otherwise both."""
    period: str
    """From one time down to the next (above 0)."""
    probability: Union[float, int]
    """Of each packet, to be lost (0 to 1)."""
    rank: int
    """The rank whose work takes longer (a rank of the job)."""
    rate: str
    """The link's rate meanwhile (1kbps to 100Tbps)."""
    switch: str
    """All links of this switch, both directions, or of a whole plane (`tor n`, `agg n`, `core
    n`; in a `bcube` `relay n`, `switch n`; with `planes` `plane n tor m`, or `plane n`)."""
    until: str


class HostStack(TypedDict, total=False):
    """The table `[host.stack]`."""

    hosts: Union[str, int]
    """Which hosts have the stack."""
    median: str
    """Each packet takes a lognormal time from the link to the transport, and each from the
    transport to the link; half of them no more than this. 0: no stack (0ps to 10s)."""
    sigma: Union[float, int]
    """Standard deviation of that time's natural logarithm (0 to 3)."""


class Host(TypedDict, total=False):
    """The table `[host]`."""

    clock_ppm: int
    """Each host's clock is within so many parts per million of the nominal rate, drawn from the
    seed. Ethernet allows 100; 0: all hosts send at exactly their link's rate (0 to 10000)."""
    phase_seed: int
    """Draws clocks, jitter and the order of packets that arrive at one instant, and nothing
    else: a result that another one moves by more than seeds differ hangs on phases (0 to 2^63 -
    1)."""
    queue: str
    """What may wait at each interface, the packet in transmission *not* included, as in ns-3. A
    switch port of ns-3 with `n` packets is `capacity = "n + 1 packets"` in `[queue]` (packets)."""
    send_jitter: str
    """Each packet leaves up to this much late, drawn uniformly; packets keep their order and
    their distance on the link. `"frame"`: up to the time of the longest packet on the host's
    link. 0: hosts that start together stay in step, and phases decide who loses."""
    stack: HostStack


_Measure = TypedDict(
    "_Measure",
    {
        "from": str,
    },
    total=False,
)


class Measure(_Measure, total=False):
    """The table `[measure]`."""

    alone: bool
    """Run each training job (`kind = "job"`) once more by itself, on the same fabric with the
    same faults and seed, all other traffic left out: `steps.alone_us` and `steps.slowdown` in
    summary.json. Takes about twice as long. Changes no other result."""
    life: bool
    """Find out where the time of each message went (docs/explain.md): `life_us` in summary.json,
    `life.parquet`. The run then uses one thread. Changes no other result."""
    limit: str
    """The run ends here at the latest (at least `to` (or `from`))."""
    max_in_flight: int
    """The run ends, with a warning, when more messages than this are under way (at least 1)."""
    packet_latency: bool
    """Time every packet first transmitted in the window until its acknowledgement arrives:
    `packet_latency_us` in summary.json, `packet_latency.parquet`. `ndp` only; the run then uses
    one thread. Changes no other result."""
    rtt: bool
    """Keep the round-trip samples of transports (TCP and its kin, and those that pace by rate):
    `rtt_us` in summary.json. Changes no other result."""
    to: str
    """Messages submitted before this are measured (after `from`)."""


class QueueLink(TypedDict, total=False):
    """The table `[queue.link]`."""

    link: str
    """The link. Nodes are `host n`, `tor n`, `agg n`, `core n`. The leaves of a leaf-spine are
    `tor`, its spines `agg`; the switch of a star is `tor 0`, those of a dumbbell `tor 0` and
    `tor 1`. The intermediate switches of a `vl2` are `core`. In a `bcube`: `host n`, `relay n`,
    `switch m`, level 0 first. With several `planes`: `plane n tor m` and so on, `nic n -> plane
    m tor k` for the port of a host (`"A n -> B m"`)."""
    one_way: bool
    """Only in the direction written; otherwise both."""
    share: Union[float, int]
    """What the ports at its ends hold, and the lengths from which they mark, times this (0.001
    to 1000)."""
    switch: str
    """All links of this switch, both directions, or of a whole plane (`tor n`, `agg n`, `core
    n`; in a `bcube` `relay n`, `switch n`; with `planes` `plane n tor m`, or `plane n`)."""


class QueueSwitch(TypedDict, total=False):
    """The table `[queue.switch]`."""

    capacity: str
    """What each of its ports holds (at least one full packet)."""
    switch: str
    """The switch (as in `[[fault]]`)."""


class QueueNdp(TypedDict, total=False):
    """Short data queue, headers and control first (10:1), trimming, bouncing."""

    bounce: bool
    """A header that does not fit is returned to its sender; otherwise it is dropped."""
    capacity: str
    """What fits of full packets, the one in service included (at least one full packet)."""
    data_weight: int
    """Full packets served per round while headers wait (1 to 255)."""
    ecn_high: str
    """See `ecn_low`."""
    ecn_last_hop: bool
    """Ports to hosts mark, too. Without it receivers' credit has their links to itself (Ultra
    Ethernet)."""
    ecn_low: str
    """An ECN-capable full packet that leaves this or less of full packets behind is not marked,
    one that leaves more than `ecn_high` is; in between the probability grows along a straight
    line (up to `ecn_high`, same unit)."""
    flag_last_hop: bool
    """A header says whether the link on which its packet did not fit leads to its host (Ultra
    Ethernet)."""
    header_capacity: str
    """What fits of headers and control packets."""
    header_weight: int
    """Headers and control packets served per round while full packets wait (1 to 255)."""
    kind: Literal["ndp"]
    """Short data queue, headers and control first (10:1), trimming, bouncing."""
    link: Union[QueueLink, Sequence[QueueLink]]
    switch: Union[QueueSwitch, Sequence[QueueSwitch]]
    trim: bool
    """What does not fit is trimmed; otherwise it is lost."""
    trim_arriving: Union[float, int]
    """Probability that the arriving packet is trimmed, not the last one queued (0 to 1)."""
    trim_to: str
    """Length of a trimmed packet (64B to 1500B)."""


class QueueDropTail(TypedDict, total=False):
    """First in, first out; drops what does not fit; optional ECN threshold or RED."""

    capacity: str
    """What fits, the packet in service included (at least one full packet)."""
    ecn_threshold: str
    """An ECN-capable packet that arrives to find more than this is marked."""
    kind: Literal["drop-tail"]
    """First in, first out; drops what does not fit; optional ECN threshold or RED."""
    link: Union[QueueLink, Sequence[QueueLink]]
    mark_at: Literal["arrival", "departure"]
    """When a packet is marked: as it arrives, for what it finds, or as its transmission begins,
    for what it leaves behind."""
    not_ect: Literal["pass", "drop"]
    """What befalls packets that would be marked and are not ECN-capable (acknowledgements, too):
    nothing, or they are lost as they arrive."""
    red_max: str
    """See `red_min`."""
    red_min: str
    """Instead of a threshold, a ramp (RED): no packet is marked that finds this or less, every
    one that finds more than `red_max`; in between the probability grows along a straight line
    (up to `red_max`, same unit)."""
    red_probability: Union[float, int]
    """The probability at `red_max`; each packet is drawn by itself (above 0, to 1)."""
    red_weight: Union[float, int]
    """Not the queue decides but an average, of which this is the weight of what the latest
    packet found (RED 1993: 0.002). It falls with arriving packets only, not while the port is
    idle. Without the key: the queue as it is (0.000001 to 1)."""
    switch: Union[QueueSwitch, Sequence[QueueSwitch]]


class QueueCutPayload(TypedDict, total=False):
    """First in, first out; cuts the payload off what would exceed a threshold."""

    capacity: str
    """What fits, the packet in service included. n packets are the memory of n full packets (at
    least one full packet)."""
    kind: Literal["cut-payload"]
    """First in, first out; cuts the payload off what would exceed a threshold."""
    link: Union[QueueLink, Sequence[QueueLink]]
    switch: Union[QueueSwitch, Sequence[QueueSwitch]]
    trim_threshold: str
    """What would make the queue longer than this loses its payload (a full packet to
    `capacity`)."""
    trim_to: str
    """Length of a trimmed packet (64B to 1500B)."""


_QueueClassNdp = TypedDict(
    "_QueueClassNdp",
    {
        "class": int,
    },
    total=False,
)


class QueueClassNdp(_QueueClassNdp, total=False):
    """Short data queue, headers and control first (10:1), trimming, bouncing."""

    bounce: bool
    """A header that does not fit is returned to its sender; otherwise it is dropped."""
    capacity: str
    """What fits of full packets, the one in service included (at least one full packet)."""
    data_weight: int
    """Full packets served per round while headers wait (1 to 255)."""
    ecn_high: str
    """See `ecn_low`."""
    ecn_last_hop: bool
    """Ports to hosts mark, too. Without it receivers' credit has their links to itself (Ultra
    Ethernet)."""
    ecn_low: str
    """An ECN-capable full packet that leaves this or less of full packets behind is not marked,
    one that leaves more than `ecn_high` is; in between the probability grows along a straight
    line (up to `ecn_high`, same unit)."""
    flag_last_hop: bool
    """A header says whether the link on which its packet did not fit leads to its host (Ultra
    Ethernet)."""
    header_capacity: str
    """What fits of headers and control packets."""
    header_weight: int
    """Headers and control packets served per round while full packets wait (1 to 255)."""
    kind: Literal["ndp"]
    """Short data queue, headers and control first (10:1), trimming, bouncing."""
    trim: bool
    """What does not fit is trimmed; otherwise it is lost."""
    trim_arriving: Union[float, int]
    """Probability that the arriving packet is trimmed, not the last one queued (0 to 1)."""
    trim_to: str
    """Length of a trimmed packet (64B to 1500B)."""


_QueueClassDropTail = TypedDict(
    "_QueueClassDropTail",
    {
        "class": int,
    },
    total=False,
)


class QueueClassDropTail(_QueueClassDropTail, total=False):
    """First in, first out; drops what does not fit; optional ECN threshold or RED."""

    capacity: str
    """What fits, the packet in service included (at least one full packet)."""
    ecn_threshold: str
    """An ECN-capable packet that arrives to find more than this is marked."""
    kind: Literal["drop-tail"]
    """First in, first out; drops what does not fit; optional ECN threshold or RED."""
    mark_at: Literal["arrival", "departure"]
    """When a packet is marked: as it arrives, for what it finds, or as its transmission begins,
    for what it leaves behind."""
    not_ect: Literal["pass", "drop"]
    """What befalls packets that would be marked and are not ECN-capable (acknowledgements, too):
    nothing, or they are lost as they arrive."""
    red_max: str
    """See `red_min`."""
    red_min: str
    """Instead of a threshold, a ramp (RED): no packet is marked that finds this or less, every
    one that finds more than `red_max`; in between the probability grows along a straight line
    (up to `red_max`, same unit)."""
    red_probability: Union[float, int]
    """The probability at `red_max`; each packet is drawn by itself (above 0, to 1)."""
    red_weight: Union[float, int]
    """Not the queue decides but an average, of which this is the weight of what the latest
    packet found (RED 1993: 0.002). It falls with arriving packets only, not while the port is
    idle. Without the key: the queue as it is (0.000001 to 1)."""


_QueueClassCutPayload = TypedDict(
    "_QueueClassCutPayload",
    {
        "class": int,
    },
    total=False,
)


class QueueClassCutPayload(_QueueClassCutPayload, total=False):
    """First in, first out; cuts the payload off what would exceed a threshold."""

    capacity: str
    """What fits, the packet in service included. n packets are the memory of n full packets (at
    least one full packet)."""
    kind: Literal["cut-payload"]
    """First in, first out; cuts the payload off what would exceed a threshold."""
    trim_threshold: str
    """What would make the queue longer than this loses its payload (a full packet to
    `capacity`)."""
    trim_to: str
    """Length of a trimmed packet (64B to 1500B)."""


#: Any kind.
QueueClass = Union[
    QueueClassNdp,
    QueueClassDropTail,
    QueueClassCutPayload,
]


_QueueFair = TypedDict(
    "_QueueFair",
    {
        "class": Union[QueueClass, Sequence[QueueClass]],
    },
    total=False,
)


class QueueFair(_QueueFair, total=False):
    """A queue for each traffic class, served in turn: equal shares in bytes."""

    kind: Literal["fair"]
    """A queue for each traffic class, served in turn: equal shares in bytes."""
    link: Union[QueueLink, Sequence[QueueLink]]
    quantum: str
    """What a class may send before it is the next one's turn (a full packet to 1 MB)."""
    switch: Union[QueueSwitch, Sequence[QueueSwitch]]


_QueuePriority = TypedDict(
    "_QueuePriority",
    {
        "class": Union[QueueClass, Sequence[QueueClass]],
    },
    total=False,
)


class QueuePriority(_QueuePriority, total=False):
    """A queue for each traffic class, the highest class first."""

    capacity: str
    """What all classes hold together, the packet in service included, beside what each holds:
    what arrives beyond that is lost. n packets are the memory of n full packets (at least one
    full packet)."""
    ecn_threshold: str
    """An ECN-capable packet that arrives to find more than this in all classes together is
    marked (PIAS). n packets as above."""
    full: Literal["drop", "trim"]
    """What becomes of a packet that its class has no room for. `drop`: what the class's own
    `kind` says. `trim`: an arriving packet with payload is cut to `trim_to`; its header, if that
    finds no room either, and control are lost. Classes are then `drop-tail`, without marks."""
    header_class: Literal["next", "highest"]
    """In which class a trimmed packet goes on: the next lower one that has a queue (the lowest
    keeps its own), as in the public switch model of nanoTransport; or the highest. At the next
    switch it is of its own class again."""
    kind: Literal["priority"]
    """A queue for each traffic class, the highest class first."""
    link: Union[QueueLink, Sequence[QueueLink]]
    sort_by: Literal["class", "payload"]
    """Which queue a packet joins. `payload`: of two, the lower if it carries payload, the higher
    if it is trimmed or control, whatever its class."""
    switch: Union[QueueSwitch, Sequence[QueueSwitch]]
    trim_to: str
    """Length of a trimmed packet (64B to 1500B)."""


class QueuePfabric(TypedDict, total=False):
    """The message with the least left first, by its packets' headers; loses of that with the
    most left: for `pfabric`."""

    capacity: str
    """What fits, the packet in service included. When it is full, the packet whose message has
    the most left is lost (at least one full packet)."""
    kind: Literal["pfabric"]
    """The message with the least left first, by its packets' headers; loses of that with the
    most left: for `pfabric`."""
    link: Union[QueueLink, Sequence[QueueLink]]
    switch: Union[QueueSwitch, Sequence[QueueSwitch]]


class QueueP4(TypedDict, total=False):
    """A P4 program says which queue a packet joins, trimmed or not: p4/ndp_switch.p4, or your
    own."""

    backend: Literal["model", "interpreter", "rust", "rtl"]
    """Who runs it: a model in Rust (of the first three on a NIC), the reference interpreter, or
    Rust generated when Trimline was built (the programs of `p4/`, with the constants that
    `crates/programs/build.rs` lists), or a circuit that is simulated cycle by cycle (a NIC with
    `clocked = true`: nic.md). Results are the same."""
    constants: dict[str, Any]
    """Other values for constants of the program, `constants = { TRIM = true }`; which there are,
    it says (integers and booleans)."""
    entries: str
    """Entries for the program's tables, p4.md."""
    kind: Literal["p4"]
    """A P4 program says which queue a packet joins, trimmed or not: p4/ndp_switch.p4, or your
    own."""
    link: Union[QueueLink, Sequence[QueueLink]]
    memory: str
    """Bytes that a port holds, the packet in service included; what the program wants beyond
    that is lost (at least one full packet, at most 1 GB)."""
    program: str
    """What runs: on a NIC NDP, Homa or Homa-Tr, or a program of your own (the path of a `.p4`
    file; on a NIC also `ndp`, `homa`, `homa-tr`)."""
    rtl_hosts: Sequence[Any]
    """Hosts whose NIC is the circuit; the others run the model of it (numbers of hosts)."""
    switch: Union[QueueSwitch, Sequence[QueueSwitch]]
    weights: Sequence[Any]
    """A queue for each, and the packets of it that are served per round while others wait (one
    to eight, each 1 to 255)."""


_QueueEcn = TypedDict(
    "_QueueEcn",
    {
        "class": int,
    },
    total=False,
)


class QueueEcn(_QueueEcn, total=False):
    """The table `[queue.ecn]`."""

    at: Literal["arrival", "departure"]
    """As `mark_at` of `drop-tail`."""
    max: str
    """Every packet is marked that finds more."""
    min: str
    """No packet is marked that finds this or less of its class at the port (up to `max`, same
    unit)."""
    per: str
    """`min` and `max` are those of a port of this rate, and grow with the port's (1kbps to
    100Tbps)."""
    probability: Union[float, int]
    """The probability at `max` (above 0, to 1)."""


class QueueLossless(TypedDict, total=False):
    """Priority flow control: switches pause their neighbours before their memory is full."""

    alpha: Union[float, int]
    """Threshold of a class of a port, as a multiple of the free shared memory (1/1024 to 1024)."""
    alpha_with_rate: bool
    """`alpha` is twice as large, up to 1, for each doubling of a port's rate over a host's."""
    buffer: str
    """Memory of each switch, packets in service included (a full packet to 1 GB)."""
    control_class: Union[int, str]
    """A class that is neither counted nor paused nor marked: acknowledgements (0 to 7)."""
    deadlock_after: str
    """Links paused for this long that wait for one another in a circle are reported as a
    deadlock (1 us to 1000 s)."""
    ecn: Union[QueueEcn, Sequence[QueueEcn]]
    headroom: str
    """Memory that each lossless class of each port has for what still comes after XOFF. `n
    delays`: what the link carries in n times its delay. `auto`: the most that can come, 2 x
    delay x rate + 3 full packets + the pause frame, if both directions are alike."""
    headroom_beside: bool
    """Headroom is memory beside `buffer`, not part of it."""
    kind: Literal["lossless"]
    """Priority flow control: switches pause their neighbours before their memory is full."""
    link: Union[QueueLink, Sequence[QueueLink]]
    lossless: Sequence[Any]
    """Classes that are paused. Others are lost at their threshold, and have no headroom (0 to
    7)."""
    pause: str
    """How long a frame stops a class, if none comes before; rounded up to quanta of 512 bit
    times of the link, at most 65 535 of those of any link, and refreshed after half of it."""
    preset: Literal["hpcc", "sonic", "legacy"]
    """Published values for the keys that are not written."""
    reserve: str
    """Memory that each lossless class of each port has for itself (to 1 GB)."""
    resume_offset: str
    """XON when the class of the port holds this much less than its threshold (to 1 GB)."""
    schedule: Union[str, Sequence[Any]]
    """The highest class first, or in turn, by weights of the classes 0 to 7 (1 to 255)."""
    switch: Union[QueueSwitch, Sequence[QueueSwitch]]
    watchdog: str
    """What happens to a class at a port that has been paused for this long, until the pause
    ends: (1 us to 1000 s)."""
    watchdog_action: Literal["drop", "forward"]
    """Its packets are lost, or they are sent."""
    xoff: str
    """Instead of `alpha`: a fixed threshold (1 B to 1 GB)."""
    xon: str
    """XON also when the class of the port holds no more than this, whatever the threshold (to 1
    GB)."""


#: Any kind.
Queue = Union[
    QueueNdp,
    QueueDropTail,
    QueueCutPayload,
    QueueFair,
    QueuePriority,
    QueuePfabric,
    QueueP4,
    QueueLossless,
]


class Routing(TypedDict, total=False):
    """The table `[routing]`."""

    mode: Literal["permute", "spray", "single", "random", "ecmp", "listed"]
    """Who chooses a packet's path."""
    path_encoding: Literal["computed", "source-route", "core-label", "core-address"]
    """With `permute`, `spray` and `single`: how the sender's choice is written into a packet. No
    effect on results."""
    paths_file: str
    """`mode = "listed"`: a line for each drawing, with the path of each host, host 0 first. A
    run with seed s takes line s, counted on from the first after the last; lines with `#` in
    front do not count."""
    reroute_after: str
    """Until switches and hosts know of the beginning or the end of a fault."""


class TopologyLink(TypedDict, total=False):
    """The table `[topology.link]`."""

    delay: str
    """Another delay (0ps to 10s)."""
    failed: bool
    """The link does not work, and everybody knows from the start."""
    link: str
    """The link. Nodes are `host n`, `tor n`, `agg n`, `core n`. The leaves of a leaf-spine are
    `tor`, its spines `agg`; the switch of a star is `tor 0`, those of a dumbbell `tor 0` and
    `tor 1`. The intermediate switches of a `vl2` are `core`. In a `bcube`: `host n`, `relay n`,
    `switch m`, level 0 first. With several `planes`: `plane n tor m` and so on, `nic n -> plane
    m tor k` for the port of a host (`"A n -> B m"`)."""
    one_way: bool
    """Only in the direction written; otherwise both."""
    rate: str
    """Another rate (1kbps to 100Tbps)."""


class TopologyStar(TypedDict, total=False):
    """Hosts around one switch."""

    hosts: int
    """Hosts around the switch (2 to 65534)."""
    kind: Literal["star"]
    """Hosts around one switch."""
    link: Union[TopologyLink, Sequence[TopologyLink]]
    link_delay: str
    """One-way propagation of the same links (0ps to 10s)."""
    link_rate: str
    """Rate of hosts' links, and of every other link without a key of its own (1kbps to 100Tbps)."""
    planes: int
    """Copies of this fabric, each with a port of every host; `link_rate` is that of a port, a
    host's rate that of all ports together. Nodes of one are written `plane n tor m` (1 to 8)."""
    slot_heap: bool
    """With `switch_slot`: what comes within a slot joins the queues together as it ends, first
    bits first, and of first bits at one instant in the order of a binary heap that is filled
    host by host; in the slot that begins then none leaves before its first bit came in the last.
    So does the switch model of FireSim. Each packet must fit a slot."""
    switch_latency: str
    """From a packet's last bit at a switch to the output queue (0ps to 10s)."""
    switch_slot: str
    """Switches send in slots of this, from time 0 on, as the switch model of FireSim does: what
    has come before a slot begins may leave in it, as much as ends within it, but one packet at
    least. For `drop-tail`, and `priority` with drop-tail classes (1ps to 10s)."""


class TopologyDumbbell(TypedDict, total=False):
    """Two switches with hosts on both sides of one bottleneck link."""

    bottleneck_delay: str
    """Its delay (0ps to 10s)."""
    bottleneck_rate: str
    """Rate of the link between the two switches (1kbps to 100Tbps)."""
    kind: Literal["dumbbell"]
    """Two switches with hosts on both sides of one bottleneck link."""
    left_hosts: int
    """Hosts on the left (1 to 65534)."""
    link: Union[TopologyLink, Sequence[TopologyLink]]
    link_delay: str
    """One-way propagation of the same links (0ps to 10s)."""
    link_rate: str
    """Rate of hosts' links, and of every other link without a key of its own (1kbps to 100Tbps)."""
    planes: int
    """Copies of this fabric, each with a port of every host; `link_rate` is that of a port, a
    host's rate that of all ports together. Nodes of one are written `plane n tor m` (1 to 8)."""
    right_hosts: int
    """Hosts on the right (1 to 65534)."""
    slot_heap: bool
    """With `switch_slot`: what comes within a slot joins the queues together as it ends, first
    bits first, and of first bits at one instant in the order of a binary heap that is filled
    host by host; in the slot that begins then none leaves before its first bit came in the last.
    So does the switch model of FireSim. Each packet must fit a slot."""
    switch_latency: str
    """From a packet's last bit at a switch to the output queue (0ps to 10s)."""
    switch_slot: str
    """Switches send in slots of this, from time 0 on, as the switch model of FireSim does: what
    has come before a slot begins may leave in it, as much as ends within it, but one packet at
    least. For `drop-tail`, and `priority` with drop-tail classes (1ps to 10s)."""


class TopologyLeafSpine(TypedDict, total=False):
    """Two tiers: every leaf joined to every spine."""

    hosts_per_leaf: int
    """Hosts of each leaf (1 to 65534)."""
    kind: Literal["leaf-spine"]
    """Two tiers: every leaf joined to every spine."""
    leaves: int
    """Switches that hosts hang at (1 to 65534)."""
    link: Union[TopologyLink, Sequence[TopologyLink]]
    link_delay: str
    """One-way propagation of the same links (0ps to 10s)."""
    link_rate: str
    """Rate of hosts' links, and of every other link without a key of its own (1kbps to 100Tbps)."""
    planes: int
    """Copies of this fabric, each with a port of every host; `link_rate` is that of a port, a
    host's rate that of all ports together. Nodes of one are written `plane n tor m` (1 to 8)."""
    slot_heap: bool
    """With `switch_slot`: what comes within a slot joins the queues together as it ends, first
    bits first, and of first bits at one instant in the order of a binary heap that is filled
    host by host; in the slot that begins then none leaves before its first bit came in the last.
    So does the switch model of FireSim. Each packet must fit a slot."""
    spines: int
    """Switches that join the leaves (1 to 65534)."""
    switch_latency: str
    """From a packet's last bit at a switch to the output queue (0ps to 10s)."""
    switch_slot: str
    """Switches send in slots of this, from time 0 on, as the switch model of FireSim does: what
    has come before a slot begins may leave in it, as much as ends within it, but one packet at
    least. For `drop-tail`, and `priority` with drop-tail classes (1ps to 10s)."""
    uplink_delay: str
    """Their delay (0ps to 10s)."""
    uplink_rate: str
    """Rate of the links between switches (1kbps to 100Tbps)."""


class TopologyFatTree(TypedDict, total=False):
    """Three tiers of k-port switches, k^3/4 hosts (Al-Fares et al., SIGCOMM'08)."""

    k: int
    """Ports of a switch (even, 2 to 128)."""
    kind: Literal["fat-tree"]
    """Three tiers of k-port switches, k^3/4 hosts (Al-Fares et al., SIGCOMM'08)."""
    link: Union[TopologyLink, Sequence[TopologyLink]]
    link_delay: str
    """One-way propagation of the same links (0ps to 10s)."""
    link_rate: str
    """Rate of hosts' links, and of every other link without a key of its own (1kbps to 100Tbps)."""
    oversubscription: int
    """Hosts of a top-of-rack switch over its uplinks (1 to 65534)."""
    planes: int
    """Copies of this fabric, each with a port of every host; `link_rate` is that of a port, a
    host's rate that of all ports together. Nodes of one are written `plane n tor m` (1 to 8)."""
    slot_heap: bool
    """With `switch_slot`: what comes within a slot joins the queues together as it ends, first
    bits first, and of first bits at one instant in the order of a binary heap that is filled
    host by host; in the slot that begins then none leaves before its first bit came in the last.
    So does the switch model of FireSim. Each packet must fit a slot."""
    switch_latency: str
    """From a packet's last bit at a switch to the output queue (0ps to 10s)."""
    switch_slot: str
    """Switches send in slots of this, from time 0 on, as the switch model of FireSim does: what
    has come before a slot begins may leave in it, as much as ends within it, but one packet at
    least. For `drop-tail`, and `priority` with drop-tail classes (1ps to 10s)."""


class TopologyVl2(TypedDict, total=False):
    """Aggregation x intermediate switches, every packet over any intermediate one (Greenberg et
    al., SIGCOMM'09)."""

    aggregation_ports: int
    """Ports of an aggregation switch (the paper's D_A) (even, 2 to 65534)."""
    hosts_per_rack: int
    """Hosts of each top-of-rack switch (the paper: 20) (1 to 65534)."""
    intermediate_ports: int
    """Ports of an intermediate switch (the paper's D_I) (even, 2 to 65534; not both 2)."""
    kind: Literal["vl2"]
    """Aggregation x intermediate switches, every packet over any intermediate one (Greenberg et
    al., SIGCOMM'09)."""
    link: Union[TopologyLink, Sequence[TopologyLink]]
    link_delay: str
    """One-way propagation of the same links (0ps to 10s)."""
    link_rate: str
    """Rate of hosts' links, and of every other link without a key of its own (1kbps to 100Tbps)."""
    shortcut: bool
    """Packets between racks that share aggregation switches turn there, on the shortest way. Not
    VL2, but its shape with plain ECMP: the testbed of DCQCN."""
    slot_heap: bool
    """With `switch_slot`: what comes within a slot joins the queues together as it ends, first
    bits first, and of first bits at one instant in the order of a binary heap that is filled
    host by host; in the slot that begins then none leaves before its first bit came in the last.
    So does the switch model of FireSim. Each packet must fit a slot."""
    switch_latency: str
    """From a packet's last bit at a switch to the output queue (0ps to 10s)."""
    switch_slot: str
    """Switches send in slots of this, from time 0 on, as the switch model of FireSim does: what
    has come before a slot begins may leave in it, as much as ends within it, but one packet at
    least. For `drop-tail`, and `priority` with drop-tail classes (1ps to 10s)."""
    uplink_delay: str
    """Their delay (0ps to 10s)."""
    uplink_rate: str
    """Rate of the links between switches (1kbps to 100Tbps)."""


class TopologyJellyfish(TypedDict, total=False):
    """A random regular graph of switches, k shortest paths (Singla et al., NSDI'12)."""

    degree: int
    """Ports of each that lead to other switches (the paper's r). 2: a ring (2 to 256; `switches`
    x `degree` even)."""
    graph_seed: int
    """Seed of the graph and of the choice among equally long paths; the scenario's `seed`
    changes neither (0 to 2^63 - 1)."""
    hosts_per_switch: int
    """Hosts of each (1 to 65534)."""
    kind: Literal["jellyfish"]
    """A random regular graph of switches, k shortest paths (Singla et al., NSDI'12)."""
    link: Union[TopologyLink, Sequence[TopologyLink]]
    link_delay: str
    """One-way propagation of the same links (0ps to 10s)."""
    link_rate: str
    """Rate of hosts' links, and of every other link without a key of its own (1kbps to 100Tbps)."""
    paths: int
    """Paths between two switches: this many of the shortest, or all if there are fewer (the
    paper's k, there 8) (1 to 64)."""
    slot_heap: bool
    """With `switch_slot`: what comes within a slot joins the queues together as it ends, first
    bits first, and of first bits at one instant in the order of a binary heap that is filled
    host by host; in the slot that begins then none leaves before its first bit came in the last.
    So does the switch model of FireSim. Each packet must fit a slot."""
    stretch: Union[int, str]
    """Paths that are more than this many links longer than the shortest are left out; 0: the
    shortest only."""
    switch_latency: str
    """From a packet's last bit at a switch to the output queue (0ps to 10s)."""
    switch_slot: str
    """Switches send in slots of this, from time 0 on, as the switch model of FireSim does: what
    has come before a slot begins may leave in it, as much as ends within it, but one packet at
    least. For `drop-tail`, and `priority` with drop-tail classes (1ps to 10s)."""
    switches: int
    """Switches, all alike (3 to 2048, more than `degree`)."""


class TopologyBcube(TypedDict, total=False):
    """Servers with a port per level that forward for each other (Guo et al., SIGCOMM'09)."""

    k: int
    """The highest level, from 0: a server has k + 1 ports (n^(k+1) at most 2048)."""
    kind: Literal["bcube"]
    """Servers with a port per level that forward for each other (Guo et al., SIGCOMM'09)."""
    link: Union[TopologyLink, Sequence[TopologyLink]]
    link_delay: str
    """One-way propagation of the same links (0ps to 10s)."""
    link_rate: str
    """Rate of hosts' links, and of every other link without a key of its own (1kbps to 100Tbps)."""
    n: int
    """Ports of a switch (at least 2)."""
    slot_heap: bool
    """With `switch_slot`: what comes within a slot joins the queues together as it ends, first
    bits first, and of first bits at one instant in the order of a binary heap that is filled
    host by host; in the slot that begins then none leaves before its first bit came in the last.
    So does the switch model of FireSim. Each packet must fit a slot."""
    stretch: Union[int, str]
    """Paths that are more than this many links longer than the shortest are left out; 0: the
    shortest only. The longer paths are 4 links longer."""
    switch_latency: str
    """From a packet's last bit at a switch to the output queue (0ps to 10s)."""
    switch_slot: str
    """Switches send in slots of this, from time 0 on, as the switch model of FireSim does: what
    has come before a slot begins may leave in it, as much as ends within it, but one packet at
    least. For `drop-tail`, and `priority` with drop-tail classes (1ps to 10s)."""


class TopologyFile(TypedDict, total=False):
    """A .topo file of htsim (two or three tiers)."""

    file: str
    """A `.topo` file of htsim."""
    kind: Literal["file"]
    """A .topo file of htsim (two or three tiers)."""
    link: Union[TopologyLink, Sequence[TopologyLink]]


#: Any kind.
Topology = Union[
    TopologyStar,
    TopologyDumbbell,
    TopologyLeafSpine,
    TopologyFatTree,
    TopologyVl2,
    TopologyJellyfish,
    TopologyBcube,
    TopologyFile,
]


class Variant(TypedDict, total=False):
    """The table `[variant]`."""

    name: str
    """What tables and pages call it (not empty, and that of no other variant)."""
    set: dict[str, Any]
    """Edits as for `--set`: a path in quotes, or a table. One with a `kind` replaces the
    scenario's whole, of another the keys that it has are set (not `seed`)."""


class Scenario(TypedDict, total=False):
    """A scenario: one experiment."""

    buffer: Buffer
    engine: Engine
    fault: Union[Fault, Sequence[Fault]]
    host: Host
    measure: Measure
    name: str
    queue: Queue
    routing: Routing
    seed: int
    topology: Topology
    traffic: Union[Traffic, Sequence[Traffic]]
    transport: Union[Transport, Sequence[Transport]]
    variant: Union[Variant, Sequence[Variant]]
    sweep: dict[str, Any]
    tune: dict[str, Any]
