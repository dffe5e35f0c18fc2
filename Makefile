# make demo    the main job: build, run two workloads under two transports, compare
# make test    every check and every test; .ci/run calls this, `make site` and the next
# make studies the quick form of the published evaluations: every row keeps its recorded verdict
# make docs    every command block of the documentation, also those that take minutes
# make swarm   before a release: ten thousand drawn scenarios (any transports, queue, traffic and
#              faults), the lives of a hundred thousand messages by each transport, and the digests of the release build
# make reproduce  every published number, with all sizes and seeds: reports in out/reproduce, the scoreboard in
#                 docs/reproduction.md; FORM= runs our own rows, too; RECORD=--record takes the verdicts over
# make recipes the recipes of CONTRIBUTING, followed by a script in a copy of the tree
# make dist    what a release consists of, into out/dist: wheel, archive, checksums
# make dist-test  the same as users take it: unpacked, in a fresh environment, by cargo install
# make golden  beside ns-2.35 and htsim: every point of tests/golden
# make bench   the simulator's own speed
# make bench-host  requests and responses over UDP beside plain UDP and the kernel's TCP; as root, before all else
#              that runs (SCHED_FIFO)
# make bench-incast  seven hosts to one through the software switch, as root: NDP over UDP and AF_XDP, the kernel's reno
#              and cubic, the simulator
# make soak    three hosts over a bad network, started again now and then: nothing lost, twice or damaged, memory flat
# make python  the Python package as a user installs it, its tests, types and stubs, and the notebook
#              python/examples/loads.ipynb
# make site    the documentation as pages with a search, in out/site
# make gallery the pictures of docs/gallery.md, drawn anew
# make python-setup  what the package's tests import, into target/python
# make ray-setup  Ray for them, too: 250 MB
# make page-setup  axe-core, with which a test looks at pages of results in Chromium, into target/page-tools
# make rtl     NICs in hardware beside their models: a million packets a program, every planted mistake,
#              proofs, both incasts with all hosts in hardware
# make rtl-setup  Verilator and what else designs in hardware need, into target/rtl-tools
# make fuzz    ten million datagrams to hosts of every transport, ten million frames to a switch, ten million malformed
#              files to each reader of training traces; then a minute of each fuzz target (needs a nightly toolchain
#              and cargo-fuzz)

.PHONY: demo test setup dist dist-test python python-setup ray-setup page-setup site gallery rtl rtl-setup lint studies docs swarm recipes golden bench bench-host bench-incast soak fuzz reproduce

TRIMLINE = target/release/trimline

# Published evaluations, in studies/.
STUDIES = ndp incast mmptcp lossless timely homa nanotransport ai uet

demo:
	cargo build --release --locked -p trimline
	$(TRIMLINE) compare --out out/demo \
	    scenarios/demo/websearch_ndp.toml scenarios/demo/websearch_newreno.toml \
	    scenarios/demo/incast_ndp.toml scenarios/demo/incast_newreno.toml

# Many tests wait for a process or a timer: two at once for each core.
export RUST_TEST_THREADS ?= $(shell expr 2 '*' $$(nproc))

# No code block of a comment is a test: `--tests` leaves out looking for them in every crate.
test: lint setup
	cargo test --locked --workspace --tests

# What tests need beside the toolchain.
setup: rtl-setup python-setup page-setup

# Without them tests of hardware say that they are skipped, and why: no reason for `make test` to fail.
rtl-setup: target/rtl-tools/ready

target/rtl-tools/ready: rtl/requirements.txt
	-python3 -m venv target/rtl-tools && \
	    target/rtl-tools/bin/pip install --quiet --disable-pip-version-check -r rtl/requirements.txt && \
	    touch $@

# The same for tests of the Python package.
python-setup: target/python/ready

target/python/ready: python/requirements.txt
	-python3 -m venv target/python && \
	    target/python/bin/pip install --quiet --disable-pip-version-check -r python/requirements.txt && \
	    touch $@

# Ray, for the tests that run sweeps on it: 70 MB to fetch, 250 MB on disk.
ray-setup: python-setup
	target/python/bin/pip install --quiet --disable-pip-version-check "ray>=2.9"

# The same for the test of pages with axe-core; it finds Chromium by itself.
page-setup: target/page-tools/node_modules/axe-core/axe.min.js

target/page-tools/node_modules/axe-core/axe.min.js:
	-mkdir -p target/page-tools && \
	    npm install --silent --no-audit --no-fund --prefix target/page-tools axe-core@4.14.1

# Without isolation: the build's tools are in the same place, where pip looks for them by name.
python: python-setup
	PATH="$(CURDIR)/target/python/bin:$$PATH" target/python/bin/pip install --disable-pip-version-check --no-build-isolation --force-reinstall --no-deps .
	target/python/bin/python -m pytest
	target/python/bin/python -m mypy
	target/python/bin/python -m mypy.stubtest trimline._trimline --ignore-disjoint-bases
	mkdir -p out && target/python/bin/python -m jupyter execute python/examples/loads.ipynb --output="$(CURDIR)/out/loads.ipynb"

rtl: rtl-setup
	TRIMLINE_RTL=all TRIMLINE_RTL_PACKETS=1000000 TRIMLINE_RTL_MUTANTS=1 TRIMLINE_RTL_CYCLES=100000 \
	    cargo test --release --locked -p trimline-rtl -- --skip data::
	TRIMLINE_RTL_ALL=1 TRIMLINE_RTL_MUTANTS=1 TRIMLINE_RTL_PACKETS=100000 cargo test --release --locked -p trimline-rtl --test it data
	TRIMLINE_RTL_MUTANTS=1 cargo test --release --locked -p trimline --test it rtl
	TRIMLINE_RTL_ALL=1 cargo test --release --locked -p trimline-scenario --test it nano_rtl
	TRIMLINE_RTL_COST=1 cargo test --release --locked -p trimline-rtl --test it cost -- --nocapture

# The program that the tests have built. Two studies at once: each ends with a long run or two.
studies: rtl-setup
	cargo test --quiet --locked --workspace --tests --no-run
	printf '%s\n' $(STUDIES) | \
	    xargs -P 2 -I{} target/debug/trimline reproduce {} --quick --out out/quick/{}

lint:
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items

docs:
	DOCS_SLOW=1 cargo test --locked --workspace --test docs

# A link that leads nowhere is an error.
site: target/site/ready
	@test -e target/site/ready || echo "skipped: no target/site/ready: mkdocs could not be installed"
	test ! -e target/site/ready || NO_MKDOCS_2_WARNING=1 target/site/bin/mkdocs build --quiet
	@echo "to read it: python3 -m http.server -d out/site"

target/site/ready: docs/site/requirements.txt
	-python3 -m venv target/site && \
	    target/site/bin/pip install --quiet --disable-pip-version-check -r docs/site/requirements.txt && \
	    touch $@

gallery: python-setup
	cargo build --release --locked -p trimline
	target/python/bin/python docs/site/gallery.py $(TRIMLINE)

swarm:
	TRIMLINE_SWARM=10000 cargo test --locked --workspace --test it swarm:: -- --nocapture
	TRIMLINE_SWARM=1000 TRIMLINE_LIFE=100000 cargo test --release --locked -p trimline-scenario --test it life:: -- --nocapture
	cargo test --release --locked --workspace --test builds

recipes:
	tests/recipes/run.sh

dist: python-setup
	tests/dist/build.sh

dist-test: dist
	tests/dist/run.sh

golden:
	TRIMLINE_GOLDEN=all cargo test --locked --workspace --test it -- --nocapture ns2 htsim

FORM = --published

reproduce:
	cargo build --release --locked -p trimline
	left=; for study in $(STUDIES); do $(TRIMLINE) reproduce $$study $(FORM) $(RECORD) || left=1; done; \
	$(TRIMLINE) scoreboard --page docs/reproduction.md $(STUDIES:%=out/reproduce/%) && test -z "$$left"

bench:
	cargo build --profile fast --locked -p trimline
	target/fast/trimline bench

bench-host:
	cd benches && cargo build --release --locked --bench host
	cd benches && first=; chrt -f 40 true 2> /dev/null && first="chrt -f 40"; \
	    $$first cargo bench --locked --bench host

bench-incast:
	cargo build --release --locked -p trimline
	cargo build --release --locked -p trimline-switch --example witness
	benches/incast.sh

MESSAGES = 10000000

soak:
	cd benches && for transport in ndp homa newreno; do \
	    cargo bench --locked --bench soak -- $(MESSAGES) $$transport || exit 1; \
	done

FUZZ_TARGETS = scenario workload headers p4 hostile goal simai chakra

fuzz:
	for crate in host switch; do \
	    TRIMLINE_FUZZ=10000000 cargo test --release --locked -p trimline-$$crate --test it receive:: -- --nocapture || exit 1; \
	done
	TRIMLINE_FUZZ=10000000 cargo test --release --locked -p trimline-ai --test it hostile:: -- --nocapture
	for target in $(FUZZ_TARGETS); do \
	    (cd fuzz && cargo +nightly fuzz run $$target -- -max_total_time=60) || exit 1; \
	done
