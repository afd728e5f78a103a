#!/usr/bin/env bash
# Implements `make lint`. Every check runs even if an earlier one fails.
set -u
cd "$(dirname "$0")/.." || exit 1
failed=()
warnings=()

check() {
	local name=$1
	shift
	echo "== $name"
	"$@" || failed+=("$name")
}

generated() {
	local before after
	before=$(sums)
	make --no-print-directory gen || return 1
	after=$(sums)
	[ "$before" = "$after" ] || { echo "generated files are stale: run \`make gen\` and commit"; return 1; }
}
sums() { cat api/v1beta1/zz_generated.* charts/lifeboat/crds/* charts/lifeboat/rbac/* docs/reference/api.md | sha256sum; }

# Other versions of a module have their requirements beside go.mod.
tidy() {
	local file
	for file in go.mod sandbox/go.mod modules/*/*.mod; do
		(cd "$(dirname "$file")" && go mod tidy -diff -modfile="$(basename "$file")") ||
			{ echo "run \`go mod tidy -modfile=$(basename "$file")\` in $(dirname "$file")"; return 1; }
	done
}

# vulnerabilities.sh says when an unreachable database is a warning, which is repeated at
# the end and in the summary of CI.
vulnerabilities() {
	local out status
	out=$(hack/vulnerabilities.sh)
	status=$?
	if [ $status -eq 2 ]; then
		warnings+=("$out")
		return 0
	fi
	[ $status -eq 0 ] || echo "$out"
	return $status
}

# Uses -trimpath, as the sandbox does. The flag is part of the build cache's key: without
# it, go vet would compile all of Kubernetes again.
modules() {
	local dir
	for dir in modules/*/; do
		echo "$dir"
		(cd "$dir" && CGO_ENABLED=0 go vet -trimpath ./...) || return 1
	done
}

check "gofmt" bash -c 'out=$(gofmt -l $(git ls-files "*.go")); [ -z "$out" ] || { echo "$out"; exit 1; }'
check "go vet in the nested modules" modules
check "go mod tidy" tidy
check "generated files" generated
check "golangci-lint, with go vet" go tool -modfile=hack/lint.mod golangci-lint run
check "golangci-lint in sandbox/" bash -c 'cd sandbox && go tool -modfile=../hack/lint.mod golangci-lint run --config ../.golangci.yml'
check "kube-api-linter" go tool -modfile=hack/lint.mod golangci-lint-kube-api-linter run --config hack/apilint.yml ./api/...
check "licences of linked modules" go test ./internal/testkit -run Licences -count=1
check "documentation" make --no-print-directory docs
check "govulncheck" vulnerabilities

mkdir -p bin/tests
: >bin/tests/not-checked
if [ ${#warnings[@]} -gt 0 ]; then
	printf 'WARNING: %s\n' "${warnings[@]}" | tee bin/tests/not-checked >&2
fi
if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
