#!/bin/sh
# Ends with an error unless all packages have the version that is given.
set -eu
wanted=$1
cd "$(dirname "$0")/../.."
failed=0
check() {
    if [ "$2" != "$wanted" ]; then
        echo "$1 has the version $2, and $wanted is to be released" >&2
        failed=1
    fi
}
for file in pyproject.toml clients/python/pyproject.toml; do
    check "$file" "$(sed -n 's/^version = "\(.*\)"$/\1/p' "$file")"
done
for file in clients/typescript/package.json clients/vscode/package.json; do
    check "$file" "$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$file")"
done
exit $failed
