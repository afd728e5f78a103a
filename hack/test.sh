#!/usr/bin/env bash
# What `make test`, `make race` and `make e2e` run. Each part writes its results to
# bin/tests/SUITE-PART.json, for hack/tally. Nothing comes from Go's cache of test results:
# it does not know that a test starts lifeboatd.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
suite=$1
mkdir -p bin/tests
rm -f "bin/tests/$suite"-*.json
failed=0

# part NAME FLAGS-AND-PACKAGES-OF-GO-TEST...
part() {
	local name=$1
	shift
	go tool -modfile=hack/tools.mod gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg \
		--jsonfile "bin/tests/$suite-$name.json" --raw-command -- go test "$@" || failed=1
}

# nested FLAGS... tests those packages of nested modules that have tests. Other modules are
# not even listed: that would download all that they require.
nested() {
	local dir packages
	for dir in modules/*/; do
		packages=$(cd "$dir" && find . -name '*_test.go' -exec dirname {} \; | sort -u)
		[ -z "$packages" ] || part "$(basename "$dir")" -C "$dir" -json -count=1 "$@" $packages
	done
}

# The packages of the smoke test on a real control plane, and all others.
smoke='./internal/e2e ./internal/sandbox/scenario'
units() { go list ./... | grep -vE '/internal/(e2e|sandbox/scenario)$'; }

# with PATTERN lists the packages whose tests have a line that matches.
with() { grep -rlE --include='*_test.go' "$1" cmd emulator hack internal scenarios | xargs -n1 dirname | sort -u | sed 's,^,./,'; }

assets() { CGO_ENABLED=0 go run -trimpath ./hack/assets "$@" || exit 1; }

case $suite in
test)
	# The tests on a control plane mostly wait, so they begin first and run beside the others.
	assets
	(part smoke -json -count=1 -short -timeout 15m $smoke; exit $failed) &
	part units -json -count=1 -short -timeout 15m $(units)
	nested -short
	wait $! || failed=1
	;;
race)
	# Not the smoke test: the lifeboatd that it starts is not built with the detector.
	part units -json -count=1 -short -race -timeout 30m -skip "^TestFirstVoyage$" $(units) ./internal/sandbox/scenario
	nested -short -race
	;;
e2e)
	# Real instances want the machine to themselves.
	assets -all
	part real -json -count=1 -tags e2e -timeout 20m -parallel 8 ./internal/e2e/real
	part rest -json -count=1 -tags e2e -timeout 40m -parallel 3 $(with '^//go:build e2e$|testing\.Short\(\)' | grep -v ^./internal/e2e/real$)
	;;
*)
	echo "usage: hack/test.sh test|race|e2e" >&2
	exit 2
	;;
esac
exit $failed
