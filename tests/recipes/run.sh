#!/bin/sh
# The recipes of CONTRIBUTING for a queue, a TCP rule, a transport and a topology, followed in a copy of
# the tree that is thrown away: it must compile and run, and the places touched are counted. Then a
# transport outside of the tree.
# usage: tests/recipes/run.sh [TARGET_DIR]   (TARGET_DIR: build products to use again)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(git -C "$here" rev-parse --show-toplevel)
copy=$(mktemp -d)
CARGO_TARGET_DIR=$(realpath -m "${1:-$copy/target}")
export CARGO_TARGET_DIR
trap 'rm -rf "$copy"' EXIT
git -C "$tree" archive HEAD | tar -x -C "$copy"
cd "$copy"
git init -q . && git add -A

# after FILE LINE TEXT: put TEXT behind the first line that contains LINE.
after() {
    grep -qF "$2" "$1" || { echo "$1 has no line with: $2" >&2; exit 1; }
    awk -v line="$2" -v text="$3" '{ print } !done && index($0, line) { print text; done = 1 }' "$1" > "$1.new"
    mv "$1.new" "$1"
}

count() {
    echo "$1: $(git ls-files --others --exclude-standard | wc -l) new file(s), changed:"
    git diff --numstat
    git add -A
}

# A queue kind: its file, its mod, and an entry in the list of queues with what reads its keys.
cp "$here/head_drop.rs" crates/queues/src/head_drop.rs
after crates/queues/src/lib.rs 'mod fifo;' 'pub mod head_drop;'
after crates/scenario/src/queue.rs 'QUEUES: ReadQueue {' '    "head-drop", |table, _, _| Ok(queues::head_drop::HeadDropSpec { bytes: table.need("bytes")? }.into()), Vec::new, "the oldest make way";'
count 'a queue kind'

# A rule: its file, its mod, its line in the table, and its name in the scenario.
cp "$here/scalable.rs" crates/transports/src/tcp/rule/scalable.rs
after crates/transports/src/tcp/rule.rs 'mod olia;' 'mod scalable;'
after crates/transports/src/tcp/rule.rs 'NewReno => newreno::NewReno,' '    /// Scalable TCP (Kelly, 2003).
    Scalable => scalable::Scalable,'
after crates/scenario/src/transport/tcp.rs '("newreno", RuleConfig::NewReno),' '    ("scalable", RuleConfig::Scalable),'
count 'a rule'

# A transport: its file and its mod; that of its keys, its mod, and an entry in the list of transports.
cp "$here/stop_and_wait.rs" crates/transports/src/stop_and_wait.rs
cp "$here/stop_and_wait_keys.rs" crates/scenario/src/transport/stop_and_wait.rs
after crates/transports/src/lib.rs 'pub mod stack;' 'pub mod stop_and_wait;'
after crates/scenario/src/transport.rs 'mod rdma;' 'mod stop_and_wait;'
after crates/scenario/src/transport.rs 'TRANSPORTS: ReadTransport {' '    "stop-and-wait", stop_and_wait::read, stop_and_wait::keys, "one packet at a time";'
count 'a transport'

# A topology: its file, its mod, its type; the file of its keys, its mod, and an entry in the list.
cp "$here/torus.rs" crates/fabric/src/topology/torus.rs
mkdir -p crates/scenario/src/topology
cp "$here/torus_keys.rs" crates/scenario/src/topology/torus.rs
after crates/fabric/src/topology.rs 'mod vl2;' 'mod torus;'
after crates/fabric/src/topology.rs 'pub use vl2::Vl2;' 'pub use torus::Torus;'
after crates/fabric/src/lib.rs 'pub use sim::Sim;' 'pub use topology::Torus;'
after crates/scenario/src/topology.rs 'mod graphs;' 'mod torus;'
after crates/scenario/src/topology.rs 'TOPOLOGIES: ReadTopology {' '    "torus", torus::read, torus::keys, "switches in rows and columns";'
count 'a topology'

cargo build -q --locked -p trimline
"$CARGO_TARGET_DIR/debug/trimline" run "$here/torus.toml" --out "$copy/out" | grep -q 'messages completed  *┆  *24 ' || {
    echo 'not all messages came' >&2
    exit 1
}
echo 'all compile, and the torus delivers with stop-and-wait'

# A transport outside of the tree: what `trimline new` writes, built against this copy.
"$CARGO_TARGET_DIR/debug/trimline" new transport my-own --dir "$copy/../$(basename "$copy")-own" --trimline "$copy"
own="$copy/../$(basename "$copy")-own"
trap 'rm -rf "$copy" "$own"' EXIT
cd "$own"
# With the profile of the tree: libraries that are compiled are used again.
sed -i '/^\[profile\.dev\]/,$d' Cargo.toml
sed -n '/^\[profile\.dev/,/^$/p' "$copy/Cargo.toml" >> Cargo.toml
cargo test -q --offline
cargo run -q --offline -- google-rpc > results
for transport in my-own ndp; do
    grep -q "^google-rpc  *$transport  *[1-9]" results || {
        echo "outside of the tree $transport delivers nothing" >&2
        exit 1
    }
done
echo 'and so does a transport outside of the tree'
