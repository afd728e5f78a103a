#!/usr/bin/env bash
# Implements `make test`, `make race` and `make e2e`. Each part writes its results to
# bin/tests/SUITE-PART.json, for hack/tally. -count=1 disables Go's cache of test results.
# That cache does not know that a test starts lifeboatd.
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

# nested FLAGS... tests those packages of the modules in modules/ that have tests. Other
# modules are not even listed: that would download all that they require.
nested() {
	local dir packages
	for dir in modules/*/; do
		packages=$(cd "$dir" && find . -name '*_test.go' -exec dirname {} \; | sort -u)
		[ -z "$packages" ] || part "$(basename "$dir")" -C "$dir" -json -count=1 "$@" $packages
	done
}

# The packages of the smoke test on a real control plane, and all others of their module.
smoke='./e2e ./scenario'
units() { go list -C sandbox ./... | grep -vE '/sandbox/(e2e|scenario)$'; }

# with MODULE lists the packages of a module that have tests which `make test` leaves out or
# makes shorter.
with() {
	(cd "$1" && find . \( -path ./sandbox -o -path ./modules -o -path ./bin \) -prune -o -name '*_test.go' -print0 |
		xargs -0 grep -lE '^//go:build (.* )?e2e( |$)|testing\.Short\(\)' | xargs -n1 dirname | sort -u)
}

# concurrent lists the packages of the root module that start goroutines or share memory. In the
# others the race detector finds nothing, and makes random cases thirty times slower. The tests of
# internal/cli run internal/doctor.
concurrent() {
	grep -rlE '\bgo (func|[a-z][A-Za-z.]*)\(|\.Go\(|sync\.|atomic\.|<-' --include='*.go' --exclude='*_test.go' cmd emulator internal |
		xargs -n1 dirname | sort -u | grep -vE '^internal/(doctor|testkit)' | sed 's|^|./|'
}

assets() { CGO_ENABLED=0 go run -C sandbox -trimpath ./hack/assets "$@" || exit 1; }

case $suite in
test)
	# The tests on a control plane mostly wait. They start first and run beside the others.
	assets
	(part smoke -C sandbox -json -count=1 -short -timeout 15m $smoke; exit $failed) &
	part units -json -count=1 -short -timeout 15m ./...
	part sandbox -C sandbox -json -count=1 -short -timeout 15m $(units)
	nested -short
	wait $! || failed=1
	;;
race)
	export CGO_ENABLED=1 # the race detector needs it
	# Not the smoke test: the lifeboatd that it starts is not built with the detector. Not the model of the
	# controller: under the detector it takes more than ten minutes, and the other tests run the same code.
	part units -json -count=1 -short -race -timeout 30m -skip '^TestModel' $(concurrent)
	part sandbox -C sandbox -json -count=1 -short -race -timeout 30m -skip "^TestFirstVoyage$" $(units) ./scenario
	nested -short -race
	;;
e2e)
	# The tests on real instances run alone, because other tests would slow them down.
	assets -all
	part real -C sandbox -json -count=1 -tags e2e -timeout 20m -parallel 8 ./e2e/real
	part install -C sandbox -json -count=1 -tags e2e -timeout 20m ./e2e/install
	part rest -C sandbox -json -count=1 -tags e2e -timeout 40m -parallel 4 $(with sandbox | grep -vE '^./(e2e/(real|install)|history)$')
	part histories -C sandbox -json -count=1 -tags e2e -timeout 30m ./history # twelve sandboxes at the same time
	part image -C modules/release -json -count=1 -tags e2e -timeout 40m .
	part root -json -count=1 -tags e2e -timeout 40m -parallel 3 $(with .)
	;;
*)
	echo "usage: hack/test.sh test|race|e2e" >&2
	exit 2
	;;
esac
exit $failed
