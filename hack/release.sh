#!/usr/bin/env bash
# Implements `make image` and `make release`. Docker is not necessary. Pushes use the
# credentials of `docker login`, if there are any. docs/guides/releases.md lists the
# variables.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${VERSION:-$(git describe --tags --always --dirty)}
dist=$PWD/dist
release() { go run -C modules/release . "$@"; }

case ${1:-} in
image)
	release image -root "$PWD" -version "$version" -out "$dist" -push "${PUSH:-}"
	;;
release)
	# What the sandbox starts takes minutes to build, so it can be left out.
	programs=
	if [ -z "${NO_SANDBOX:-}" ]; then
		programs=$PWD/bin/programs
		rm -rf "$programs"
		CGO_ENABLED=0 go run -C sandbox -trimpath ./hack/assets -o "$programs"
	fi
	release release -root "$PWD" -version "$version" -out "$dist" -sandbox "$programs"
	(cd "$dist" && sha256sum --quiet --check SHA256SUMS)
	;;
push)
	# The very bytes that SHA256SUMS covers.
	release push -out "$dist/image" -push "${PUSH:?write PUSH=HOST/PATH, such as ghcr.io/TEAM}/lifeboatd"
	release push -out "$dist/chart" -push "$PUSH/charts/lifeboat"
	;;
*)
	echo "usage: hack/release.sh image|release|push" >&2
	exit 2
	;;
esac
