#!/usr/bin/env bash
# Implements `make docs`: writes the documentation as a website to the directory DOCS (dist/docs), and
# checks its spelling and its links. The words and the length of sentences are checked by the tests of
# internal/testkit.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "${DOCS:=dist/docs}"
git ls-files -z --cached --others --exclude-standard -- '*.md' | xargs -0 --no-run-if-empty go tool -modfile=hack/docs.mod misspell -error
out=$(go tool -modfile=hack/docs.mod hugo build --source hack/site --destination "$(realpath "$DOCS")" --cleanDestinationDir --noBuildLock --panicOnWarning) ||
	{ echo "$out"; exit 1; }
go run ./hack/linkcheck "$DOCS" "$(sed -n 's/^source = "\(https:.*\)"/\1/p' hack/site/hugo.toml)"
echo "wrote $DOCS/index.html"
