#!/bin/sh
# What `make dist` has made, as users take it: the archive unpacked elsewhere, the wheel in a fresh
# environment, `cargo install`. usage: tests/dist/run.sh
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
dist=$root/out/dist
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$dist"
sha256sum --quiet --check SHA256SUMS
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -1)

# ran PROGRAM...: the program says its version, and runs a scenario of the archive.
ran() {
    "$@" --version | grep -q "^trimline $version (.*engine " || { echo "$1: no version" >&2; exit 1; }
    "$@" run scenarios/htsim/connection_matrix.toml --out "$place/run" --json |
        python3 -c 'import json, sys; assert json.load(sys.stdin)["results"]["messages"]["completed"] > 0'
}

tar -C "$place" -xzf trimline-*.tar.gz
cd "$place"/trimline-*
ran ./trimline
for part in man/trimline.1 man/trimline-run.1 completions/trimline.bash LICENSE-MIT LICENSE-APACHE README.md third-party.md; do
    test -s "$part" || { echo "the archive has no $part" >&2; exit 1; }
done
echo "archive: $(find . -type f | wc -l) files"

# Libraries that it needs are those of the Python tools: no network is asked for.
python3 -m venv "$place/fresh"
"$place/fresh/bin/pip" install --quiet --disable-pip-version-check --no-deps "$dist"/trimline-*.whl
site=$("$root/target/python/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$site" > "$("$place/fresh/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tools.pth"
ran "$place/fresh/bin/trimline"
"$place/fresh/bin/python" - << 'PYTHON'
import trimline
run = trimline.run("scenarios/htsim/connection_matrix.toml")
assert run.flows.num_rows > 0, run
print("wheel:", run)
PYTHON

cargo install --quiet --locked --offline --debug --path "$root/crates/cli" --root "$place/cargo" \
    --target-dir "${CARGO_TARGET_DIR:-$root/target}"
ran "$place/cargo/bin/trimline"
echo 'cargo install: done'
