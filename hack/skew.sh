#!/usr/bin/env bash
# Implements `make skew`: an older release, then this tree, then the older release again. OLDER is the
# git commit of the older release.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'skew: %s (%s)\n' "$1" "$(date -u +%H:%M:%S)"; }

commit=$(git rev-parse --verify --quiet "$OLDER^{commit}") || {
	echo "skew: the commit $OLDER is not in this clone: run \`git fetch --unshallow\`, or set OLDER to another commit" >&2
	exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
say "exporting the older release, $commit, to $dir"
git archive "$commit" | tar -x -C "$dir"
say "building its programs, and those of this tree"
go build -C "$dir" -o "$dir/bin/" ./cmd/lifeboatd ./cmd/lifeboat
go build -o "$dir/newer/" ./cmd/lifeboatd ./cmd/lifeboat
say "building the programs of the sandbox, or finding them in the cache"
go run -C sandbox ./hack/assets -karpenter
say "upgrade and rollback"
LIFEBOAT_OLDER="$dir" LIFEBOAT_NEWER="$dir/newer" \
	go test -C sandbox -count=1 -timeout 60m -tags skew -v -run 'TestSkew$' ./e2e/skew
