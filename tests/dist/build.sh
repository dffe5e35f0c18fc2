#!/bin/sh
# What a release consists of, into out/dist: the wheel of the Python package with the command in it, and
# an archive with program, manual pages, completions, scenarios, studies, P4 programs and licences.
# usage: tests/dist/build.sh [PROFILE]   (release, or dev: quicker, for a try)
set -eu
cd "$(dirname "$0")/../.."
profile=${1:-release}
case $profile in dev) built=debug ;; *) built=$profile ;; esac
target=$(rustc -vV | sed -n 's/^host: //p')
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
name=trimline-$version-$target
dist=out/dist
rm -rf "$dist"
mkdir -p "$dist/$name/completions"

cargo build --locked --profile "$profile" -p trimline
program=${CARGO_TARGET_DIR:-target}/$built/trimline
cp "$program" "$dist/$name/"
"$program" man "$dist/$name/man" > /dev/null
for shell in bash zsh fish elvish powershell; do
    "$program" completions "$shell" > "$dist/$name/completions/trimline.$shell"
done
"$program" examples "$dist/$name" > /dev/null
cp README.md CHANGELOG.md CITATION.cff LICENSE-MIT LICENSE-APACHE docs/third-party.md "$dist/$name/"
tar -C "$dist" --owner=0 --group=0 --sort=name -czf "$dist/$name.tar.gz" "$name"
rm -r "${dist:?}/$name"

target/python/bin/maturin build --locked --profile "$profile" --out "$dist" > /dev/null
(cd "$dist" && sha256sum -- *.tar.gz *.whl > SHA256SUMS)
ls -l "$dist"
