#!/bin/sh
# Builds the editor into one file, with the licences of what is in it. Two builds of one lock file are the same bytes.
#   sh editor/build.sh          writes the file, and its hash with that of the lock file into editor/built.txt
#   sh editor/build.sh check    builds elsewhere and compares
set -eu
cd "$(dirname "$0")"
to=../src/hubbub/service/pages/static
npm ci --ignore-scripts --no-audit --no-fund --silent
out=$to/editor.js
[ "${1:-}" = check ] && out=$(mktemp -d)/editor.js
node_modules/.bin/esbuild editor.js --bundle --format=esm --minify --target=es2022 --legal-comments=none \
  --charset=utf8 --log-level=warning --outfile="$out"
if [ "${1:-}" = check ]; then
  cmp "$out" $to/editor.js && echo "the editor is what its lock file builds"
  exit
fi
{
  echo "editor.js holds these packages, each under its licence:"
  for package in node_modules/@codemirror/* node_modules/@lezer/* node_modules/@marijn/* node_modules/crelt node_modules/style-mod node_modules/w3c-keyname; do
    echo; echo "== $(node -p "const p = require('./$package/package.json'); p.name + ' ' + p.version")"
    cat "$package"/LICENSE*
  done
} > $to/editor-licences.txt
sha256sum package-lock.json editor.js $to/editor.js > built.txt
cat built.txt
