#!/bin/sh
# The recipes of CONTRIBUTING for a queue kind and a TCP rule, followed in a copy of the tree that is
# thrown away: it must compile, and the places touched are counted.
# usage: tests/recipes/run.sh [TARGET_DIR]   (TARGET_DIR: build products to use again)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(git -C "$here" rev-parse --show-toplevel)
copy=$(mktemp -d)
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

CARGO_TARGET_DIR=${1:-$copy/target} cargo check -q -p trimline-scenario
echo 'both compile'
