#!/usr/bin/env bash
# Executes the Dockerfile where no daemon runs and no base image can be pulled: debootstrap makes the
# bases, buildah runs every instruction in a chroot. Prints the image's size and how soon it is ready.
#   sudo [TORCH_INDEX=URL] [WHEELS=FOLDER] [BAKED_MODEL=] deploy/build_image.sh [FOLDER]
# Needs root, buildah, debootstrap and a Node.js, whose files become the base of the page's stage.
# WHEELS: a folder of wheels that pip looks into as well, such as CPU builds of torch.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/image}
suite=${SUITE:-bookworm} # its Python is that of the Dockerfile
mirror=${MIRROR:-http://deb.debian.org/debian}
port=${PORT:-8722}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
store=(--storage-driver vfs --root "$folder/store" --runroot "$folder/run")

make_base() { # NAME ROOT
    tar --create --directory "$2" . | gzip -1 >"$folder/$1.tar.gz"
    printf 'FROM scratch\nADD %s.tar.gz /\n' "$1" >"$folder/$1.Dockerfile"
    buildah "${store[@]}" bud --isolation chroot --tag "$1" --file "$folder/$1.Dockerfile" "$folder"
    rm "$folder/$1.tar.gz"
}

if ! [ -f "$folder/python.done" ]; then
    rm -rf "$folder/python" "$folder/node"
    debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv,python-is-python3 \
        "$suite" "$folder/python" "$mirror"
    rm -rf "$folder"/python/var/cache/apt/archives/*.deb "$folder"/python/var/lib/apt/lists/*
    cp -a "$folder/python" "$folder/node"
    node=$(readlink -f "$(command -v node)")
    npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
    install -D "$node" "$folder/node/usr/local/bin/node"
    mkdir -p "$folder/node/usr/local/lib/node_modules"
    cp -a "$npm" "$folder/node/usr/local/lib/node_modules/npm"
    mkdir -p "$folder/node/usr/local/etc" # npm believes those whom this machine believes
    printf 'cafile=/etc/ssl/certs/ca-certificates.crt\n' >"$folder/node/usr/local/etc/npmrc"
    ln -s ../lib/node_modules/npm/bin/npm-cli.js "$folder/node/usr/local/bin/npm"
    make_base apply-python "$folder/python"
    make_base apply-node "$folder/node"
    rm -rf "$folder/python" "$folder/node"
    touch "$folder/python.done"
fi

options=(--volume /etc/ssl/certs:/etc/ssl/certs:ro)
if [ -n "${WHEELS:-}" ]; then
    printf '[global]\nfind-links = %s\n' "$WHEELS" >"$folder/pip.conf"
    options+=(--volume "$WHEELS:$WHEELS:ro" --volume "$folder/pip.conf:/etc/pip.conf:ro")
fi
for name in TORCH_INDEX NPM_REGISTRY PIP_INDEX_URL BAKED_MODEL; do
    if [ -n "${!name+set}" ]; then options+=(--build-arg "$name=${!name}"); fi
done
buildah "${store[@]}" bud --isolation chroot --network host "${options[@]}" \
    --build-arg PYTHON_IMAGE=localhost/apply-python --build-arg NODE_IMAGE=localhost/apply-node \
    --target cpu --tag apply-service .
buildah "${store[@]}" images --format '{{.Name}} {{.Size}}' | grep 'apply-service '

# As a container starts it: its user, its environment, its command.
container=$(buildah "${store[@]}" from --pull-never localhost/apply-service)
started=$(date +%s%N)
buildah "${store[@]}" run --isolation chroot --network host --env APPLY_SERVICE_PORT="$port" \
    --env APPLY_SERVICE_HOST=127.0.0.1 "$container" -- apply-service serve &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; buildah "${store[@]}" rm "$container" >/dev/null' EXIT
until curl --silent --fail --output /dev/null "http://127.0.0.1:$port/health/ready?model=ready"; do
    kill -0 $server
    sleep 0.2
done
echo "ready after $((($(date +%s%N) - started) / 1000000)) ms"
curl --silent --fail --header 'Content-Type: application/json' --data \
    '{"original":"a = 1\nb = 2\n","update":"# ... existing code ...\nb = 3\n","path":"x.py"}' \
    "http://127.0.0.1:$port/v1/apply"
echo
