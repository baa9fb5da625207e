# The front door. Every target brings what it needs by tools/setup. `make` alone prints what there is.
PREFIX = /usr/local

help:
	@sed -n 's/^\([a-z-]*\):.*## */  make \1\t/p' Makefile

demo: build/lhbox  ## a week of earthquakes into a table, read back by DuckDB and PyIceberg
	tools/demo

dev: build/lhbox  ## the server in the foreground, its data in lhbox-data/
	build/lhbox dev

test: setup  ## units in four builds (gcc, clang, sanitizers), oracles, the real binary
	tools/test

test-all: setup  ## test, and what takes long
	tools/test all

conformance: setup  ## DuckDB, PyIceberg, Spark, Polars, ClickHouse and the REST compatibility kit on lhbox's catalog
	tools/conformance

# QUICK=1: about 2 minutes. ONLY=T5,T6: these figures. PAGE=docs/performance.md: the table goes into it.
bench: build/lhbox  ## speed, size and memory beside nginx, PostgreSQL, redis, DuckDB, Polars, chdb, pyarrow, PyIceberg
	tools/setup bench
	LHBOX=$(CURDIR)/build/lhbox build/venv-bench/bin/python tests/bench/bench.py \
		$(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(PAGE),--page $(PAGE))

lint: setup  ## layers, style, banned calls, format
	tools/lint

SIM_SCHEDULES = 20000
sim: build/lhbox  ## 20,000 schedules of the whole protocol with faults, two at a time
	build/release/tests/sim/lhbox_sim run --count=$(SIM_SCHEDULES)

sim-planted: setup  ## every planted fault of the protocol must be found
	tools/sim planted

models:  ## the protocol's Promela models, without and with planted faults
	tools/setup models
	tests/sim/models/run

fuzz: setup  ## every fuzz harness for FUZZ_SECONDS (600)
	tools/fuzz

install: build/lhbox  ## the binary to PREFIX/bin (/usr/local)
	install -D -m 755 build/lhbox $(DESTDIR)$(PREFIX)/bin/lhbox

clean:  ## away with the builds; what tools/setup fetched stays
	rm -rf build/release build/clang build/asan build/tsan build/fuzz build/results build/demo build/lhbox build/*.log

setup:
	tools/setup

build/lhbox: setup
	tools/build release

.PHONY: help demo dev test test-all conformance bench lint sim sim-planted models fuzz install clean setup build/lhbox
