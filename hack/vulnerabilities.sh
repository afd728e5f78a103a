#!/usr/bin/env bash
# Checks both modules for known vulnerabilities with govulncheck.
#
# Exit codes: 0 none; 1 a vulnerability, or the check failed; 2 not checked, because the
# database cannot be reached, where that is allowed.
#
#   LIFEBOAT_VULNDB           directory with a copy of the Go vulnerability database, as
#                             https://go.dev/doc/security/vuln/database lays it out
#   LIFEBOAT_VULNDB_DAYS      maximum age of that copy in days (default 14)
#   LIFEBOAT_CI               if set, an unreachable database is a failure
#   LIFEBOAT_VULNDB_OPTIONAL  if set, it is not, also in CI
#   GOVULNCHECK               command to run (default: the pinned one)
set -u
cd "$(dirname "$0")/.." || exit 1
read -ra command <<<"${GOVULNCHECK:-go tool -modfile=$PWD/hack/tools.mod govulncheck}"

if [ -n "${LIFEBOAT_VULNDB:-}" ]; then
	# The index says when the database was last modified.
	modified=$(sed -n 's/.*"modified" *: *"\([^"]*\)".*/\1/p' "$LIFEBOAT_VULNDB/index/db.json") || exit 1
	seconds=$(date -d "${modified:-none}" +%s) || exit 1
	days=$((($(date +%s) - seconds) / 86400))
	if [ "$days" -gt "${LIFEBOAT_VULNDB_DAYS:-14}" ]; then
		echo "the copy of the vulnerability database in $LIFEBOAT_VULNDB is $days days old: get a new one, or raise LIFEBOAT_VULNDB_DAYS"
		exit 1
	fi
	command+=(-db "file://$(realpath "$LIFEBOAT_VULNDB")")
fi

unreachable=
for dir in . sandbox; do
	out=$("${command[@]}" -C "$dir" ./... 2>&1)
	case $? in
	0) continue ;;
	3) ;; # vulnerabilities; their texts can contain any word
	*) if grep -qE 'dial tcp|no such host|connection refused|i/o timeout' <<<"$out"; then
		unreachable=yes
		continue
	fi ;;
	esac
	echo "$out"
	exit 1
done
[ -z "$unreachable" ] && exit 0
echo "NOT CHECKED: known vulnerabilities; the Go vulnerability database cannot be reached, and LIFEBOAT_VULNDB names no copy"
[ -n "${LIFEBOAT_CI:-}" ] && [ -z "${LIFEBOAT_VULNDB_OPTIONAL:-}" ] && exit 1
exit 2
