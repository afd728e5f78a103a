#!/usr/bin/env bash
# Implements `make matrix`: a few tests on each version of Kubernetes with each version of Karpenter.
# The logs are in bin/matrix. The last lines are a table for docs/support.md.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
mkdir -p bin/matrix
rm -f bin/matrix/*.log
admission='^(TestAgentWritesOnlyItsNodeNotice|TestControllerChangesOnlyOwn(Pod|Node)Fields|TestKarpenterGuardRefusesInterruptions|TestAdmissionMatchesOracle)$'
table=()
failed=0

# check NAME TEST PACKAGE runs one test and adds its verdict and its seconds to the row. A test that
# did not run has failed.
check() {
	local log="bin/matrix/$LIFEBOAT_KUBERNETES-$LIFEBOAT_KARPENTER-$1.log" begun=$SECONDS verdict=passed
	go test -C sandbox -count=1 -timeout 20m -tags e2e -v -run "$2" "$3" >"$log" 2>&1 || verdict=FAILED
	grep -q -- '^--- PASS: ' "$log" || verdict=FAILED
	[ $verdict = passed ] || failed=1
	printf 'matrix: Kubernetes %s, Karpenter %s: %s %s after %d s (%s)\n' \
		"$LIFEBOAT_KUBERNETES" "$LIFEBOAT_KARPENTER" "$1" $verdict $((SECONDS - begun)) "$log"
	row+=" $verdict, $((SECONDS - begun)) s |"
}

for LIFEBOAT_KUBERNETES in $KUBERNETES; do
	for LIFEBOAT_KARPENTER in $KARPENTER; do
		export LIFEBOAT_KUBERNETES LIFEBOAT_KARPENTER
		row="| $LIFEBOAT_KUBERNETES | $LIFEBOAT_KARPENTER |"
		if versions=$(go run -C sandbox ./hack/assets -karpenter); then
			read -r kubernetes karpenter <<<"$versions"
			row="| ${kubernetes#v} | ${karpenter#v} |"
			check reclaim 'TestReplacementIsReadyBeforeEviction$/^undisturbed$' ./e2e
			check guard 'TestScenarios$/^karpenter-health$' ./scenario
			check admission "$admission" ./chart
		else
			failed=1
			row+=" not built | not built | not built |"
		fi
		table+=("$row")
	done
done

printf '\n| Kubernetes | Karpenter | spot reclaim | stop by AWS Health, with the guard | admission policies |\n|---|---|---|---|---|\n'
printf '%s\n' "${table[@]}"
exit $failed
