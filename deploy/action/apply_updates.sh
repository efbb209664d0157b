#!/bin/sh
# Applies updates that lie beside their files: src/a.py.update to src/a.py, and removes what is done.
#
#     apply_updates.sh [FOLDER or FILE.update …]        by default the working directory
#
# A file changes only where the result is applied without a doubt; what is in doubt or rejected stays
# as it is, its findings go to stderr, and the exit code is 1. APPLY_SERVICE_URL names a service;
# without one updates are merged on this machine, without a model.
set -u
[ $# -gt 0 ] || set -- .
[ -n "${APPLY_SERVICE_URL:-}" ] || export APPLY_SERVICE_USE_MODEL="${APPLY_SERVICE_USE_MODEL:-never}"

list=$(mktemp) || exit 1
trap 'rm -f "$list" "$list.unsorted"' EXIT
find "$@" -type f -name '*.update' > "$list.unsorted" || exit 1
sort "$list.unsorted" > "$list"

num_applied=0
num_left=0
while IFS= read -r update; do
    file=${update%.update}
    # Whoever sends updates could send a link, too, and change what lies outside of the folder.
    if [ -L "$file" ]; then
        status=link
    else
        apply-service apply "$file" --update "$update" --write < /dev/null > /dev/null
        status=$?
    fi
    if [ "$status" = 0 ]; then
        rm -f -- "$update"
        num_applied=$((num_applied + 1))
        continue
    fi
    num_left=$((num_left + 1))
    case $status in
        3) what='needs review' ;;
        4) what='rejected' ;;
        link) what='is a symbolic link; put the update beside the file itself' ;;
        *) what="failed with $status" ;;
    esac
    [ -z "${GITHUB_ACTIONS:-}" ] || echo "::error file=$file::the update is not applied: $what"
    echo "$file: $what" >&2
done < "$list"
echo "$num_applied applied, $num_left left"
[ $num_left -eq 0 ]
