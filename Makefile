# The front door. Every target brings what it needs (tools/setup). `make` alone prints what there is.
PREFIX = /usr/local

help:
	@sed -n 's/^\([a-z-]*\):.*## */  make \1\t/p' Makefile

test: setup  ## units in four builds (gcc, clang, sanitizers), oracles, the real binary
	tools/test

test-all: setup  ## test, and what takes long
	tools/test all

lint: setup  ## layers, style, banned calls, format
	tools/lint

install: build/lhbox  ## the binary to PREFIX/bin (/usr/local)
	install -D -m 755 build/lhbox $(DESTDIR)$(PREFIX)/bin/lhbox

clean:  ## away with the builds; what tools/setup fetched stays
	rm -rf build/release build/clang build/asan build/tsan build/results build/lhbox build/*.log

setup:
	tools/setup

build/lhbox: setup
	tools/build release

.PHONY: help test test-all lint install clean setup build/lhbox
